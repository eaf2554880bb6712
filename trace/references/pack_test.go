package references

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

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

func definitions(t testing.TB) *trace.TypeTable {
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
	return types
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

// genParts makes the parts of a listing as a probe sends them: objects of all kinds of classes, whose slots may
// continue in the next part.
func genParts(t *rapid.T, types *trace.TypeTable) (parts []*trace.RefPart) {
	const classes = 9
	head := &trace.RefPart{}
	kinds := []uint64{trace.RefInstance, trace.RefObjArray, trace.RefArray, trace.RefMirror, trace.RefReference,
		trace.RefChunk, trace.RefFiller}
	var all [classes]trace.RefClass
	for i := range all {
		c := &all[i]
		*c = trace.RefClass{ID: uint64(i + 1), Type: uint64(i + 1), Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		x := trace.Type{ID: c.Type, Size: 16, Name: "C"}
		switch c.Kind {
		case trace.RefObjArray, trace.RefArray:
			x.Flags, x.Log2 = trace.TypeArray|trace.TypeObjArray, 2
		case trace.RefMirror:
			x.Flags, c.Slots = trace.TypeVariable, rapid.Uint64Max(3).Draw(t, "slots")
		default:
			c.Slots = rapid.SampledFrom([]uint64{0, 1, 2, 5, 70}).Draw(t, "slots")
		}
		if err := types.Define(x); err != nil {
			t.Fatal(err)
		}
	}
	head.Classes = all[:]
	target := rapid.SampledFrom([]uint32{0, 0, 1, 2, 5, 6, 7, 100, 1 << 31, 1<<32 - 1})
	parts = append(parts, head)
	at := uint64(0)
	for range rapid.IntRange(0, 4).Draw(t, "parts") {
		list := trace.NewListEncoder(types)
		var slots []uint32
		for range rapid.IntRange(0, 20).Draw(t, "objects") {
			c := &all[rapid.IntRange(0, classes-1).Draw(t, "class")]
			length, n := uint64(0), c.Slots
			switch c.Kind {
			case trace.RefObjArray, trace.RefArray:
				length = rapid.SampledFrom([]uint64{0, 1, 4, 100}).Draw(t, "length")
				if n = length; c.Kind == trace.RefArray {
					n = 0
				}
			case trace.RefMirror, trace.RefChunk:
				more := rapid.Uint32Max(90).Draw(t, "statics")
				slots = append(slots, 7, more)
				n += uint64(more)
				if length = 4; c.Kind == trace.RefChunk {
					length = 0
				}
			}
			for range n {
				slots = append(slots, target.Draw(t, "slot"))
			}
			list.Object(at, uint32(c.Type), length)
			at += 2 + (length+1)/2 + 10
		}
		if list.Err() != nil {
			t.Fatal(list.Err())
		}
		cut := rapid.IntRange(0, len(slots)).Draw(t, "cut")
		parts = append(parts, &trace.RefPart{Lists: [][]byte{slices.Clone(list.Bytes())},
			Slots: [][]byte{words(slots[:cut/2]...), words(slots[cut/2 : cut]...)}},
			&trace.RefPart{Slots: [][]byte{words(slots[cut:]...)}})
	}
	for i, p := range parts {
		p.Listing, p.N = 1, uint64(i+1)
	}
	parts[0].Flags, parts[0].HasAbout = trace.RefFirst, true
	return parts
}

// packed gives the parts as the agent stores them, encoded and decoded.
func packed(t rapid.TB, parts []*trace.RefPart, types *trace.TypeTable) (out []*trace.RefPart) {
	k := Packer{}
	for _, p := range parts {
		q := *p
		if columns, ok := k.Pack(p, types); ok {
			q.Slots, q.Columns = nil, columns
		} else if len(bytes.Join(p.Slots, nil)) > 0 {
			t.Fatalf("part %d was not packed", p.N)
		}
		r, err := trace.DecodeRefs(trace.EncodeRefs(&q))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// TestPacked: what is packed is unpacked to what it was, part by part; parts that are not packed may come between them.
func TestPacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types := trace.NewTypeTable(8)
		parts := genParts(t, types)
		k := NewUnpacker(types)
		for i, p := range packed(t, parts, types) {
			if rapid.Bool().Draw(t, "raw") {
				p = parts[i]
			}
			got, err := k.Unpack(p)
			if want := bytes.Join(parts[i].Slots, nil); err != nil || !bytes.Equal(bytes.Join(got, nil), want) {
				t.Fatalf("part %d: %v\ngot  %x\nwant %x", p.N, err, got, want)
			}
		}
	})
}

// TestPackedSmall: neighbours that refer to neighbours take a byte for a reference, and so do references to few
// objects.
func TestPackedSmall(t *testing.T) {
	types := definitions(t)
	list := trace.NewListEncoder(types)
	var slots []uint32
	const n = 1000
	for i := range uint32(n) {
		list.Object(uint64(2*i), tNode, 0)
		slots = append(slots, []uint32{90001, 5, 70000}[i*i%3], 1<<20+3*i)
	}
	parts := []*trace.RefPart{{Listing: 1, N: 1, Flags: trace.RefFirst, HasAbout: true,
		Classes: []trace.RefClass{{ID: 1, Type: tNode, Slots: 2}}},
		{Listing: 1, N: 2, Lists: [][]byte{list.Bytes()}, Slots: [][]byte{words(slots...)}}}
	if b := len(packed(t, parts, types)[1].Columns); b > 2*n+40 {
		t.Errorf("%d references take %d bytes", 2*n, b)
	}
}

// TestPackedTorn: a part is packed only behind all that came before it.
func TestPackedTorn(t *testing.T) {
	types, all := definitions(t), parts()
	k := Packer{}
	k.Pack(all[0], types)
	if _, ok := k.Pack(all[2], types); ok {
		t.Error("a part was packed without the one before it")
	}
	if _, ok := k.Pack(all[1], types); ok {
		t.Error("a part was packed behind one that is missing")
	}
	over := *all[1]
	over.Slots = [][]byte{words(make([]uint32, 9)...)} // no object has so many
	k.Pack(all[0], types)
	if _, ok := k.Pack(&over, types); ok {
		t.Error("slots of no object were packed")
	}
}

// TestPackedBounds: a JVM that sends objects without their slots, or classes without end, is not packed for long.
func TestPackedBounds(t *testing.T) {
	types := definitions(t)
	list := trace.NewListEncoder(types)
	for i := range uint64(200_000) {
		list.Object(2*i, tNode, 0)
	}
	many := make([]trace.RefClass, 50_000)
	for what, next := range map[string]func(n uint64) *trace.RefPart{
		"objects": func(uint64) *trace.RefPart { return &trace.RefPart{Lists: [][]byte{list.Bytes()}} },
		"classes": func(n uint64) *trace.RefPart {
			for i := range many {
				many[i] = trace.RefClass{ID: 1, Type: n*uint64(len(many)) + uint64(i)}
			}
			return &trace.RefPart{Classes: many}
		},
	} {
		k := Packer{}
		k.Pack(&trace.RefPart{Listing: 1, N: 1, Classes: []trace.RefClass{{ID: 1, Type: tNode, Slots: 2}}}, types)
		n := uint64(2)
		for ; n < 20 && k.walk != nil; n++ {
			p := next(n)
			p.Listing, p.N = 1, n
			k.Pack(p, types)
		}
		if n == 20 {
			t.Errorf("%s: no bound in %d parts", what, n)
		}
	}
}

// FuzzUnpack: columns that nobody packed are an error, and take no more memory than they have bytes.
func FuzzUnpack(f *testing.F) {
	types := definitions(f)
	for _, p := range packed(f, parts(), types) {
		f.Add(p.Columns, uint8(p.N))
	}
	f.Fuzz(func(t *testing.T, columns []byte, n uint8) {
		k := NewUnpacker(types)
		for _, p := range parts() {
			q := *p
			if p.N == uint64(n) {
				q.Slots, q.Columns = nil, append([]byte{}, columns...)
			}
			got, err := k.Unpack(&q)
			if err != nil {
				if !errors.Is(err, ErrCorrupt) {
					t.Fatal(err)
				}
				return
			}
			if p.N == uint64(n) && len(bytes.Join(got, nil)) > 4*len(columns) {
				t.Fatalf("%d bytes of %d", len(bytes.Join(got, nil)), len(columns))
			}
		}
	})
}
