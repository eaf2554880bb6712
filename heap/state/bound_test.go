package state

import (
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// TestFarTypeID shows that the largest id costs no table of its size.
func TestFarTypeID(t *testing.T) {
	s := New()
	s.add(Object{Addr: 8, Words: 2, Type: trace.MaxTypeID})
	if len(s.PerType()) != 0 || s.Objects() != 1 {
		t.Fatalf("table of %d rows for one type", len(s.PerType()))
	}
	if got := taken(s, 0, 16); len(got) != 1 || s.Objects() != 0 || s.Bytes() != 0 {
		t.Fatalf("took %v, %d left", got, s.Objects())
	}
}

// TestCodesAreDropped lets arrays of ever new lengths come and go: the dictionary stays about as large as what lives,
// and what lives stays what it is.
func TestCodesAreDropped(t *testing.T) {
	s := New()
	for i := range uint64(100) {
		s.add(Object{Addr: 1<<20 + i*8, Words: i + 2, Length: i, Type: 3, Birth: 1})
	}
	most := 0
	for i := range uint64(100_000) {
		s.add(Object{Addr: i % 50 * 64, Words: 2, Length: 1000 + i, Type: 3, Birth: 2, Sample: i + 1})
		if i%50 == 49 {
			if n := len(taken(s, 0, 50*64)); n != 50 {
				t.Fatalf("took %d", n)
			}
			s.renumber()
		}
		most = max(most, len(s.Codes.Type))
	}
	if most > 2*minCodes {
		t.Errorf("%d codes for at most 150 objects", most)
	}
	n := uint64(0)
	s.Each(func(o Object) bool {
		if o.Addr != 1<<20+n*8 || o.Length != n || o.Words != n+2 || o.Type != 3 || o.Sample != 0 {
			t.Fatalf("object %d is %+v", n, o)
		}
		n++
		return true
	})
	if n != 100 || s.Objects() != 100 {
		t.Errorf("%d objects left", n)
	}
	for _, c := range s.Chunks {
		if len(c.Samples) > 0 {
			t.Errorf("%d samples of dead objects", len(c.Samples))
		}
	}
}

func (s *State) add(o Object) {
	s.put(o.Addr, s.Codes.Of(o.Type, o.Length, o.Words), o.Birth)
	if o.Sample != 0 {
		s.writable(o.Addr>>ChunkShift).mark(uint16(o.Addr&(ChunkWords-1)), o.Sample)
	}
}
