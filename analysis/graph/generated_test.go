package graph

import (
	"math/rand/v2"

	"github.com/heapcam/heapcam/trace/references"
)

// generated makes a heap of n objects with about 2.2 slots each, of which 23 % are null: most references lead to the
// next object that nothing refers to yet, or to a near one, as allocation and copying collectors leave them; 2 % lead
// anywhere.
func generated(n int) *references.Listing {
	r := rand.New(rand.NewPCG(1, 2))
	l := &references.Listing{First: make([]uint64, 1, n+1), Addr: make([]uint32, n), Code: make([]uint32, n),
		Words: make([]uint32, n), Shapes: []references.Shape{
			{Name: "app/Leaf", Kind: references.PrimitiveArray},
			{Name: "app/Record", Fields: make([]references.Field, 3)},
			{Name: "[Lapp/Record;", Kind: references.ObjectArray, Rest: "[]"},
			{Name: "app/Node", Fields: make([]references.Field, 2)},
			{Name: "app/Weak", Kind: references.Reference,
				Fields: []references.Field{{Name: "referent", Strength: references.Weak}, {Name: "next"}}},
		}}
	at, slots := uint32(0), uint64(0)
	for i := range n {
		code, k := uint32(0), uint64(0)
		switch x := r.IntN(100); {
		case x < 45:
		case x < 75:
			code, k = 1, 3
		case x < 80:
			code, k = 2, 18
		case x < 98:
			code, k = 3, 2
		default:
			code, k = 4, 2
		}
		l.Addr[i], l.Code[i], l.Words[i] = at, code, 2+uint32(k+1)/2
		at += l.Words[i]
		slots += k
		l.First = append(l.First, slots)
	}
	l.Slots = make([]uint32, slots)
	next := 1 // the first object that nothing refers to yet
	for i := range n {
		for k := range l.Of(i) {
			switch x := r.IntN(100); {
			case x < 23:
				continue
			case x < 75 && next < n:
				next = max(next, i+1)
				l.Of(i)[k] = l.Addr[min(next, n-1)] + 1
				next++
			case x < 77:
				l.Of(i)[k] = l.Addr[r.IntN(n)] + 1
			default:
				l.Of(i)[k] = l.Addr[min(n-1, max(0, i+int(r.NormFloat64()*200)))] + 1
			}
		}
	}
	for range 5000 {
		l.Roots = append(l.Roots, references.Root{Target: l.Addr[r.IntN(n)] + 1, Kind: references.SystemClass})
	}
	return l
}
