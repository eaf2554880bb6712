package references

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// What the probe would send of four objects: a Node (a, next), an array of two, the mirror of Node with one static, and
// a class loader.
const (
	tNode = iota + 1
	tArray
	tClass
	tLoader
)

func definitions(t testing.TB) Definitions {
	types := trace.NewTypeTable(8)
	all := map[uint64]trace.Type{
		tNode: {ID: tNode, Size: 16, Name: "Node"},
		tArray: {ID: tArray, Flags: trace.TypeArray | trace.TypeObjArray, Size: 16, Log2: 2,
			Name: "[Ljava/lang/Object;"},
		tClass:  {ID: tClass, Flags: trace.TypeVariable, Size: 16, Name: "java/lang/Class"},
		tLoader: {ID: tLoader, Size: 16, Name: "Loader"},
	}
	for _, x := range all {
		if err := types.Define(x); err != nil {
			t.Fatal(err)
		}
	}
	return Definitions{Base: 1 << 30, Types: types,
		Type: func(id uint64) (trace.Type, bool) { x, ok := all[id]; return x, ok },
		Method: func(id uint64) (trace.Method, bool) {
			lines := []trace.LineEntry{{BCI: 0, Line: 7}, {BCI: 4, Line: 8}}
			return trace.Method{Class: "LMain;", Name: "main", Lines: lines}, id == 1
		},
		Thread: func(id uint64) (trace.Thread, bool) { return trace.Thread{Name: "worker"}, id == 1 }}
}

func words(v ...uint32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

func parts() []*trace.RefPart {
	return []*trace.RefPart{
		{Listing: 3, N: 1, Flags: trace.RefFirst, HasAbout: true,
			About: trace.References{GC: 9, Objects: 4, Slots: 5, NumRoots: 1, Missing: "a\nb"},
			Classes: []trace.RefClass{{ID: 1, Type: tNode, Slots: 2, Statics: 1},
				{ID: 2, Type: tArray, Kind: trace.RefObjArray}, {ID: 3, Type: tClass, Kind: trace.RefMirror},
				{ID: 4, Type: tLoader}},
			Fields: []trace.RefField{{Class: 1, Slot: 1, Declared: 1, Name: "next", Sig: "LNode;"},
				{Class: 1, Flags: trace.RefStatic, Declared: 1, Name: "cache"}},
			Extra: []trace.RefExtra{{From: 16, To: 6, Kind: trace.RefDefines},
				{From: 6, To: 0, Kind: trace.RefResolved}},
			Roots: []trace.RefRoot{{Target: 1, Kind: trace.RootStack, Thread: 1, Method: 1, BCI: 6}}},
		// Node at 0, array of 2 at 2
		{Listing: 3, N: 2, Lists: [][]byte{{0, tNode + 1, tArray + 1, 2, 0}}, Slots: [][]byte{words(0, 3, 1)}},
		{Listing: 3, N: 3, Slots: [][]byte{words(7)}}, // the array goes on
		// mirror at 6 of 10 words, the loader behind it
		{Listing: 3, N: 4, Flags: trace.RefLast, Lists: [][]byte{{6 << 1, tClass + 1, 10, tLoader + 1, 0}},
			Slots: [][]byte{words(1, 1, 1)}},
	}
}

func TestAssemble(t *testing.T) {
	a := NewAssembler(definitions(t))
	var l *Listing
	for i, p := range parts() {
		got, err := a.Add(p)
		if err != nil || (got != nil) != (i == 3) {
			t.Fatalf("part %d: %v %v", i+1, got, err)
		}
		l = got
	}
	if l.Collection != 9 || !slices.Equal(l.Missing, []string{"a", "b"}) ||
		!slices.Equal(l.Addr, []uint32{0, 2, 6, 16}) {
		t.Fatalf("%+v", l)
	}
	node, array, mirror, loader := l.Of(0), l.Of(1), l.Of(2), l.Of(3)
	if !slices.Equal(node, []uint32{0, 3}) || !slices.Equal(array, []uint32{1, 7}) ||
		!slices.Equal(mirror, []uint32{1, 1}) || !slices.Equal(loader, []uint32{7}) {
		t.Errorf("slots %v %v %v %v", node, array, mirror, loader)
	}
	if f := l.Shape(0).Slot(1); f != (Field{Name: "next", Class: "Node", Declared: "LNode;"}) {
		t.Errorf("field %+v", f)
	}
	if s := l.Shape(2); s.Kind != Mirror || s.Of != "Node" || s.Slot(0).Name != "cache" || s.Slot(1).Name == "" {
		t.Errorf("mirror %+v", s)
	}
	if s := l.Shape(3); s.Kind != Loader || s.Slot(0).Name != "(classes)" {
		t.Errorf("loader %+v", s)
	}
	want := Root{Target: 1, Kind: StackLocal, Thread: "worker", Class: "Main", Method: "main", Line: 8}
	if l.Roots[0] != want {
		t.Errorf("root %+v", l.Roots[0])
	}
}

// TestAssembleTorn: without any one of its parts there is no listing, it counts, and the next one is whole.
func TestAssembleTorn(t *testing.T) {
	for lost := range parts() {
		a := NewAssembler(definitions(t))
		for i, p := range parts() {
			if i == lost {
				continue
			}
			if l, err := a.Add(p); l != nil || err != nil {
				t.Fatalf("without part %d, at part %d: %v %v", lost+1, i+1, l, err)
			}
		}
		next := parts()
		for i, p := range next {
			p.Listing = 4
			if l, err := a.Add(p); err != nil || (l != nil) != (i == 3) {
				t.Fatalf("after a loss of part %d: %v %v", lost+1, l, err)
			}
		}
		if lost > 0 && a.Torn != 1 {
			t.Errorf("without part %d: %d torn", lost+1, a.Torn)
		}
	}
}

func TestAssembleContradictions(t *testing.T) {
	for why, spoil := range map[string]func([]*trace.RefPart){
		"more objects promised": func(p []*trace.RefPart) { p[0].About.Objects++ },
		"fewer slots":           func(p []*trace.RefPart) { p[2].Slots = nil },
		"more slots":            func(p []*trace.RefPart) { p[3].Slots = append(p[3].Slots, words(1)) },
		"an unknown class":      func(p []*trace.RefPart) { p[0].Classes = p[0].Classes[1:]; p[0].Fields = nil },
		"objects out of order":  func(p []*trace.RefPart) { p[3].Lists[0][0] = 0 },
		"a field of no class":   func(p []*trace.RefPart) { p[0].Fields[0].Class = 77 },
		"a field of no slot":    func(p []*trace.RefPart) { p[0].Fields[0].Slot = 2 },
	} {
		a, all := NewAssembler(definitions(t)), parts()
		spoil(all)
		var last error
		for _, p := range all {
			l, err := a.Add(p)
			if l != nil {
				t.Errorf("%s: taken", why)
			}
			last = errors.Join(last, err)
		}
		if !errors.Is(last, ErrCorrupt) {
			t.Errorf("%s: %v", why, last)
		}
	}
}

// FuzzAssemble: whatever a recording holds, there is a listing that Check takes, or an error.
func FuzzAssemble(f *testing.F) {
	var seed []byte
	for _, p := range parts() {
		seed = trace.AppendBlock(seed, trace.EncodeRefs(p))
	}
	f.Add(seed)
	defs := definitions(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		a := NewAssembler(defs)
		for block, err := range trace.Blocks(b) {
			if err != nil {
				return
			}
			p, err := trace.DecodeRefs(block)
			if err != nil {
				continue
			}
			if l, err := a.Add(p); err == nil && l != nil {
				if err := l.Check(); err != nil {
					t.Fatal(err)
				}
				for i := range l.Addr {
					for k := range l.Of(i) {
						l.Shape(i).Slot(k)
					}
				}
			}
		}
	})
}
