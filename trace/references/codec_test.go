package references

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func genListing(t *rapid.T) *Listing {
	text := rapid.SampledFrom([]string{"", "a", "java/lang/Object", "名"})
	l := &Listing{Collection: rapid.Uint64Max(1<<20).Draw(t, "gc"), Base: rapid.Uint64().Draw(t, "base"),
		First: []uint64{0}}
	for range rapid.IntRange(1, 6).Draw(t, "shapes") {
		s := Shape{Type: rapid.Uint32Max(1<<20).Draw(t, "type"), Name: text.Draw(t, "name"), Of: text.Draw(t, "of"),
			Kind: Kind(rapid.IntRange(0, int(kinds)-1).Draw(t, "kind")), Rest: text.Draw(t, "rest")}
		for range rapid.SampledFrom([]int{0, 1, 2, 5, 70}).Draw(t, "fields") {
			s.Fields = append(s.Fields, Field{text.Draw(t, "field"), text.Draw(t, "class"), text.Draw(t, "declared"),
				Strength(rapid.IntRange(0, int(strengths)-1).Draw(t, "strength"))})
		}
		l.Shapes = append(l.Shapes, s)
	}
	slot := rapid.SampledFrom([]uint32{0, 0, 1, 2, 5, 100, 1 << 31, 1<<32 - 1})
	at := uint32(0)
	for range rapid.IntRange(0, 20).Draw(t, "objects") {
		at += rapid.SampledFrom([]uint32{0, 0, 1, 1000, 1 << 26}).Draw(t, "gap")
		code := rapid.Uint32Max(uint32(len(l.Shapes)-1)).Draw(t, "code")
		words := rapid.SampledFrom([]uint32{1, 2, 2, 3, 1 << 20}).Draw(t, "words")
		l.Addr, l.Code, l.Words = append(l.Addr, at), append(l.Code, code), append(l.Words, words)
		n := len(l.Shapes[code].Fields)
		if l.Shapes[code].Rest != "" {
			n += rapid.SampledFrom([]int{0, 1, 9, 100}).Draw(t, "more")
		}
		for range n {
			l.Slots = append(l.Slots, slot.Draw(t, "slot"))
		}
		l.First = append(l.First, uint64(len(l.Slots)))
		at += words
	}
	for range rapid.IntRange(0, 3).Draw(t, "roots") {
		l.Roots = append(l.Roots, Root{slot.Draw(t, "target"),
			RootKind(rapid.IntRange(0, int(rootKinds)-1).Draw(t, "kind")), text.Draw(t, "thread"),
			text.Draw(t, "class"), text.Draw(t, "method"),
			rapid.IntRange(0, 70000).Draw(t, "line"), text.Draw(t, "field")})
	}
	if text.Draw(t, "missing") != "" {
		l.Missing = []string{"monitors", ""}
	}
	return l
}

// same compares two listings; nil and empty are the same.
func same(a, b *Listing) bool {
	x, y := *a, *b
	for _, l := range []*Listing{&x, &y} {
		l.Addr, l.Code = append([]uint32{}, l.Addr...), append([]uint32{}, l.Code...)
		l.Words = append([]uint32{}, l.Words...)
		l.Slots, l.Roots = append([]uint32{}, l.Slots...), append([]Root{}, l.Roots...)
	}
	return reflect.DeepEqual(x, y)
}

// TestRoundTrip: what Encode wrote Decode gives back; a part that is missing, doubled or spoilt is an error.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := genListing(t)
		parts, err := Encode(l)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(parts)
		if err != nil {
			t.Fatal(err)
		}
		if !same(got, l) {
			t.Fatalf("got %+v\nwant %+v", got, l)
		}
		for i, p := range parts {
			if gc, head, err := Collection(p); err != nil || gc != l.Collection || head != (i == 0) {
				t.Fatalf("part %d: %d %v %v", i, gc, head, err)
			}
			spoilt := bytes.Clone(p)
			spoilt[rapid.IntRange(0, len(p)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			bad := append(append(append([][]byte{}, parts[:i]...), spoilt), parts[i+1:]...)
			if _, err := Decode(bad); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("a spoilt part: %v", err)
			}
		}
		if len(parts) > 1 {
			if _, err := Decode(parts[:len(parts)-1]); !errors.Is(err, ErrIncomplete) {
				t.Fatalf("a part is missing: %v", err)
			}
			if _, err := Decode(append(parts[:len(parts):len(parts)], parts[1])); !errors.Is(err, ErrIncomplete) {
				t.Fatalf("a part twice: %v", err)
			}
		}
	})
}

// TestParts: a listing that does not fit in one part has several.
func TestParts(t *testing.T) {
	l := &Listing{First: []uint64{0}, Shapes: []Shape{{Name: "[La/B;", Kind: ObjectArray, Rest: "[]"}}}
	for i, n := range []int{1, PartSlots, 5, PartSlots + 7, 3} {
		l.Addr, l.Code, l.Words = append(l.Addr, uint32(i*10)), append(l.Code, 0), append(l.Words, 10)
		for range n {
			l.Slots = append(l.Slots, uint32(i*10+1))
		}
		l.First = append(l.First, uint64(len(l.Slots)))
	}
	parts, err := Encode(l)
	if err != nil || len(parts) != 6 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	if got, err := Decode(parts); err != nil || !same(got, l) {
		t.Fatalf("%v", err)
	}
}

// FuzzDecode: bytes that are no listing give an error, whatever their checksum says, and what is decoded is sound.
func FuzzDecode(f *testing.F) {
	l := two()
	l.Roots = []Root{{Target: 3, Kind: StackLocal, Thread: "main"}}
	parts, err := Encode(l)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(parts[0][:len(parts[0])-4], parts[1][:len(parts[1])-4])
	f.Fuzz(func(t *testing.T, head, objects []byte) {
		l, err := Decode([][]byte{seal(head), seal(objects)})
		if err != nil {
			return
		}
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
		again, err := Encode(l)
		if err != nil {
			t.Fatal(err)
		}
		if l2, err := Decode(again); err != nil || !same(l, l2) {
			t.Fatalf("%v: %+v %+v", err, l, l2)
		}
	})
}
