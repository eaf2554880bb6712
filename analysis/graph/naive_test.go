package graph

import (
	"testing"

	"github.com/heapcam/heapcam/trace/references"
	"pgregory.net/rapid"
)

// naive is the definition of what Build finds, in the plainest form.
type naive struct {
	l     *references.Listing
	level []uint8
	edges [][2]int // of all that count: from, to; from -1: a root
}

type weighted struct {
	from, to int
	level    uint8
}

func newNaive(l *references.Listing) *naive {
	var all []weighted
	for _, r := range l.Roots {
		if to := l.Find(r.Target); to >= 0 {
			all = append(all, weighted{-1, to, plain(rootLevel(r))})
		}
	}
	for i := range l.Addr {
		for k, s := range l.Of(i) {
			if to := l.Find(s); to >= 0 {
				all = append(all, weighted{i, to, strengthLevel[l.Shape(i).Slot(k).Strength]})
			}
		}
	}
	n := &naive{l: l, level: make([]uint8, len(l.Addr))}
	for i := range n.level {
		n.level[i] = unreached
	}
	through := func(e weighted) uint8 {
		if e.from < 0 {
			return e.level
		}
		return max(e.level, n.level[e.from])
	}
	for changed := true; changed; {
		changed = false
		for _, e := range all {
			if at := through(e); at < n.level[e.to] {
				n.level[e.to], changed = at, true
			}
		}
	}
	for _, e := range all {
		if at := through(e); at == n.level[e.to] && at <= levelFinal {
			n.edges = append(n.edges, [2]int{e.from, e.to})
		}
	}
	return n
}

// without gives which live objects are reached if one is taken away.
func (n *naive) without(gone int) []bool {
	seen := make([]bool, len(n.level))
	for changed := true; changed; {
		changed = false
		for _, e := range n.edges {
			if e[1] != gone && !seen[e[1]] && (e[0] < 0 || seen[e[0]]) {
				seen[e[1]], changed = true, true
			}
		}
	}
	return seen
}

// genListing draws a listing, with forged targets.
func genListing(t *rapid.T) *references.Listing {
	l := &references.Listing{First: []uint64{0}, Shapes: []references.Shape{
		{Name: "a/Plain", Class: 1, Fields: []references.Field{{Name: "x"}, {Name: "y"}}},
		{Name: "[La/Plain;", Class: 2, Kind: references.ObjectArray, Rest: "[]"},
		{Name: "a/Soft", Kind: references.Reference,
			Fields: []references.Field{{Name: "referent", Strength: references.Soft}, {Name: "queue"}}},
		{Name: "a/Final", Kind: references.Reference,
			Fields: []references.Field{{Name: "queue"}, {Name: "referent", Strength: references.Final}}},
		{Name: "a/Weak", Kind: references.Reference,
			Fields: []references.Field{{Name: "referent", Strength: references.Weak}}},
		{Name: "a/Phantom", Kind: references.Reference,
			Fields: []references.Field{{Name: "referent", Strength: references.Phantom}}},
		{Name: "java/lang/Class", Kind: references.Mirror, Of: "a/Plain", Class: 1,
			Fields: []references.Field{{Name: "classLoader"}}},
		{Name: "java/lang/Class", Kind: references.Mirror, Of: "a/Plain[]", Class: 2,
			Fields: []references.Field{{Name: "classLoader"}}},
	}}
	n := rapid.IntRange(0, 25).Draw(t, "objects")
	at := uint32(0)
	for range n {
		at += rapid.Uint32Range(0, 3).Draw(t, "hole") * 37
		words := rapid.Uint32Range(1, 5).Draw(t, "words")
		l.Addr, l.Words = append(l.Addr, at), append(l.Words, words)
		l.Code = append(l.Code, rapid.SampledFrom([]uint32{0, 0, 0, 1, 2, 3, 4, 5, 6, 7}).Draw(t, "code"))
		at += words
	}
	target := func() uint32 {
		if n == 0 || rapid.IntRange(0, 9).Draw(t, "wild") == 0 {
			return rapid.SampledFrom([]uint32{0, 1, 2, at / 2, at, 1 << 31, 1<<32 - 1}).Draw(t, "forged")
		}
		return l.Addr[rapid.IntRange(0, n-1).Draw(t, "to")] + 1
	}
	for i := range n {
		slots := len(l.Shape(i).Fields)
		if l.Code[i] == 1 {
			slots = rapid.IntRange(0, 4).Draw(t, "length")
		}
		for range slots {
			l.Slots = append(l.Slots, target())
		}
		l.First = append(l.First, uint64(len(l.Slots)))
	}
	for range rapid.IntRange(0, 4).Draw(t, "roots") {
		l.Roots = append(l.Roots, references.Root{Target: target(), Kind: rapid.SampledFrom([]references.RootKind{
			references.JNIGlobal, references.StackLocal, references.JNIWeak, references.LoaderRoot}).Draw(t, "kind")})
	}
	return l
}

// TestAgainstNaive: reach, dominators, retained sizes and paths are what their definitions say.
func TestAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := genListing(t)
		addClasses(nil, l)
		n := newNaive(l)
		g, err := Build(l, nil)
		if err != nil {
			t.Fatal(err)
		}
		all := n.without(-1)
		dominated := make([][]bool, len(l.Addr)) // by object: what is not reached without it
		for i := range l.Addr {
			if plain(g.level[i]) != n.level[i] || g.Live(i) != all[i] {
				t.Fatalf("object %d: level %d, want %d", i, g.level[i], n.level[i])
			}
			rest, words := n.without(i), uint32(0)
			dominated[i] = make([]bool, len(l.Addr))
			for j := range all {
				if dominated[i][j] = all[j] && !rest[j]; dominated[i][j] {
					words += l.Words[j]
				}
			}
			if got := g.Retained(i); got != uint64(words)*8 {
				t.Fatalf("object %d retains %d bytes, want %d", i, got, words*8)
			}
		}
		for i := range l.Addr {
			want := None // the dominator that all others dominate
			for j := range l.Addr {
				if j != i && dominated[j][i] && (want == None || dominated[want][j]) {
					want = j
				}
			}
			if got := g.Dominator(i); got != want {
				t.Fatalf("object %d has dominator %d, want %d", i, got, want)
			}
		}
	})
}
