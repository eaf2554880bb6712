package state

import (
	"testing"

	"pgregory.net/rapid"
)

// taken takes out what begins in [start, start+words).
func taken(s *State, start, words uint64) (out []Object) {
	s.Each(func(o Object) bool {
		if o.Addr >= start && o.Addr-start < words {
			out = append(out, o)
		}
		return true
	})
	t := taker{s: s}
	t.begin(start, words)
	t.finish()
	return out
}

// TestStateAgainstMap compares the columns with a plain map under random additions and evacuations.
func TestStateAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, m := New(), map[uint64]Object{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "add") {
				o := Object{Addr: rapid.Uint64Range(0, 4*ChunkWords).Draw(t, "addr"), Words: 2,
					Type: rapid.Uint32Range(1, 4).Draw(t, "type")}
				if _, ok := m[o.Addr]; !ok {
					s.add(o)
					m[o.Addr] = o
				}
				continue
			}
			at, n := rapid.Uint64Range(0, 4*ChunkWords).Draw(t, "at"),
				rapid.Uint64Range(0, 2*ChunkWords).Draw(t, "words")
			for _, o := range taken(s, at, n) {
				if m[o.Addr] != o || o.Addr < at || o.Addr >= at+n {
					t.Fatalf("took %v", o)
				}
				delete(m, o.Addr)
			}
			for a := range m {
				if a >= at && a < at+n {
					t.Fatalf("left %d in [%d,+%d)", a, at, n)
				}
			}
		}
		n := 0
		s.Each(func(o Object) bool {
			n++
			if m[o.Addr] != o {
				t.Fatalf("holds %v", o)
			}
			return true
		})
		if n != len(m) || s.Objects() != n {
			t.Fatalf("%d objects, counted %d, truth %d", n, s.Objects(), len(m))
		}
	})
}
