package graph

import (
	"encoding/binary"
	"testing"

	"github.com/heapcam/heapcam/trace/references"
)

// column takes up to n little-endian words of b.
func column(b []byte, n int) (out []uint32, rest []byte) {
	for ; n > 0 && len(b) >= 4; n, b = n-1, b[4:] {
		out = append(out, binary.LittleEndian.Uint32(b))
	}
	return out, b
}

// forged makes a listing of bytes: cycles, targets where nothing is, columns of wrong lengths, slots without end.
// plain: addresses, sizes and positions of slots are in order, so that the graph itself is what is tried.
func forged(b []byte, plain bool) *references.Listing {
	l := &references.Listing{Shapes: []references.Shape{
		{Name: "a/Plain", Class: 1, Kind: references.ObjectArray, Rest: "[]"},
		{Name: "a/Weak", Class: 1, Kind: references.Reference, Rest: "x",
			Fields: []references.Field{{Name: "referent", Strength: references.Weak}}},
		{Name: "a/Final", Kind: references.Reference, Rest: "x",
			Fields: []references.Field{{Name: "referent", Strength: references.Final}}},
		{Name: "java/lang/Class", Kind: references.Mirror, Of: "a/Plain", Class: 1,
			Fields: []references.Field{{Name: "loader"}}, Rest: "s"},
	}}
	if len(b) < 2 {
		return l
	}
	n, roots := int(b[0]), int(b[1]%8)
	b = b[2:]
	var first, target []uint32
	l.Addr, b = column(b, n)
	l.Words, b = column(b, n)
	l.Code, b = column(b, n)
	first, b = column(b, n+1)
	target, b = column(b, roots)
	l.Slots, _ = column(b, len(b))
	for i, t := range target {
		l.Roots = append(l.Roots, references.Root{Target: t, Kind: references.RootKind(i)})
	}
	for _, f := range first {
		l.First = append(l.First, uint64(f))
	}
	if !plain {
		return l
	}
	n = min(len(l.Addr), len(l.Words), len(l.Code), len(l.Slots))
	l.Addr, l.Words, l.Code, l.First = l.Addr[:n], l.Words[:n], l.Code[:n], []uint64{0}
	for i := range n {
		l.Addr[i], l.Words[i], l.Code[i] = uint32(3*i), l.Words[i]%3+1, l.Code[i]%uint32(len(l.Shapes))
		l.First = append(l.First, uint64(len(l.Slots)*(i+1)/n))
	}
	if n == 0 {
		l.Slots = nil
	}
	for i := range l.Slots { // most of them lead somewhere
		if l.Slots[i]%8 != 7 {
			l.Slots[i] = l.Slots[i]%uint32(3*n+1) + 1
		}
	}
	for i := range l.Roots {
		l.Roots[i].Target %= uint32(3*n + 1)
	}
	return l
}

// FuzzGraph: whatever a listing says, there is an error, or a graph of which everything can be asked. A path has an
// end, and no dominator is its own.
func FuzzGraph(f *testing.F) {
	cycle := []byte{2, 1}
	for _, w := range []uint32{0, 3, 1, 1, 0, 0, 0, 1, 2, 1, 4, 1} {
		cycle = binary.LittleEndian.AppendUint32(cycle, w)
	}
	f.Add(cycle, false)
	f.Add(cycle, true)
	huge := []byte{1, 0}
	for _, w := range []uint32{0, 1, 0, 0, 1<<32 - 1} {
		huge = binary.LittleEndian.AppendUint32(huge, w)
	}
	f.Add(huge, false)
	f.Fuzz(func(t *testing.T, b []byte, plain bool) {
		l, levels := forged(b, plain), forged(b, plain)
		g, err := Build(l, nil)
		if err != nil {
			return
		}
		reach, err := Levels(levels)
		if err != nil {
			t.Fatal(err)
		}
		var all []Member
		for i := range g.Objects() {
			all = append(all, Member{Object: i, Weight: 1})
			if g.Live(i) != (reach[i] == Kept) {
				t.Fatalf("object %d: %v, %v", i, g.Live(i), reach[i])
			}
			if p, ok := g.PathTo(i); ok {
				_ = p.Text()
			}
			for d, steps := g.Dominator(i), 0; d != None; d, steps = g.Dominator(d), steps+1 {
				if steps > g.Objects() {
					t.Fatalf("the dominators of %d go in a circle", i)
				}
			}
			if r := g.Retained(i); g.Live(i) && r < g.Bytes(i) {
				t.Fatalf("object %d of %d bytes retains %d", i, g.Bytes(i), r)
			}
		}
		h := g.Holders(all)
		_ = h.Lines()
		g.Biggest(10)
		g.Drop(g.Drops(10))
		g.RootKinds()
		for i, top := range g.Outermost() {
			if (top == None) == g.Live(i) {
				t.Fatalf("object %d: outermost %d, live: %v", i, top, g.Live(i))
			}
		}
		g.Ways(all)
	})
}
