package export

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"

	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/analysis/retention"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace/references"
	"github.com/heapcam/heapcam/trace/references/referencestest"
)

// TestHprofReferences: the records of the dump follow each other as the format says, and hold all objects with what
// they refer to.
func TestHprofReferences(t *testing.T) {
	b := referencestest.New()
	b.Class("[Ljava/lang/Object;")
	b.Class("[J")
	b.Class("app/A", "x", "y")
	b.Class("java/lang/ref/SoftReference", "referent soft", "queue")
	m := b.Mirror("app/A", "first")
	a, array, longs, soft := b.New("app/A"), b.New("[Ljava/lang/Object;"), b.New("[J"),
		b.New("java/lang/ref/SoftReference")
	b.Set(m, "first", a)
	b.Set(a, "y", array)
	b.Add(array, longs, -1, soft)
	b.Set(soft, "referent", a)
	b.Root(m, references.Root{Kind: references.SystemClass})
	l := b.Listing()
	id := func(i int) uint64 { return l.Base + uint64(l.Addr[i])*8 }
	g, err := graph.Build(l, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	x := NewHprofReferences(&retention.Heap{Graph: g, Names: &heap.Symbols{}})
	if err := x.Write(context.Background(), &out); err != nil {
		t.Fatal(err)
	}
	d := readHprof(t, out.Bytes())
	u8 := func(v ...uint64) (b []byte) {
		for _, x := range v {
			b = binary.BigEndian.AppendUint64(b, x)
		}
		return b
	}
	if d.roots != 1 || len(d.objects) != 4 {
		t.Errorf("%d roots, objects %v", d.roots, d.objects)
	}
	if !bytes.HasPrefix(d.objects[id(a)], u8(0, id(array))) ||
		!bytes.Equal(d.objects[id(array)], u8(id(longs), 0, id(soft))) ||
		!bytes.HasPrefix(d.objects[id(soft)], u8(id(a), 0)) || len(d.objects[id(longs)]) != 16 {
		t.Errorf("objects %x", d.objects)
	}
	if s := d.statics[id(m)]; len(s) != 2 || s[1] != id(a) {
		t.Errorf("statics %x", d.statics)
	}
}

type dumped struct {
	objects map[uint64][]byte   // payloads by id
	statics map[uint64][]uint64 // references by class
	roots   int
}

// readHprof reads a dump, byte by byte.
func readHprof(t *testing.T, b []byte) *dumped {
	t.Helper()
	d := &dumped{objects: map[uint64][]byte{}, statics: map[uint64][]uint64{}}
	b = b[len("JAVA PROFILE 1.0.2\x00")+4+8:]
	u4 := func(n int) uint64 { return uint64(binary.BigEndian.Uint32(b[n:])) }
	for len(b) > 0 {
		tag, n := b[0], int(u4(5))
		seg, rest := b[9:9+n], b[9+n:]
		if tag == hprofSegment {
			d.segment(t, seg)
		}
		b = rest
	}
	return d
}

func (d *dumped) segment(t *testing.T, b []byte) {
	take := func(n uint64) []byte {
		x := b[:n]
		b = b[n:]
		return x
	}
	u2 := func() uint64 { return uint64(binary.BigEndian.Uint16(take(2))) }
	u4 := func() uint64 { return uint64(binary.BigEndian.Uint32(take(4))) }
	u8 := func() uint64 { return binary.BigEndian.Uint64(take(8)) }
	for len(b) > 0 {
		switch tag := take(1)[0]; tag {
		case hprofRootClass, hprofRoot:
			u8()
			d.roots++
		case hprofClass:
			id := u8()
			take(4 + 6*8 + 4 + 2)
			for n := u2(); n > 0; n-- {
				take(8)
				if kind, v := take(1)[0], u8(); kind == hprofObject {
					d.statics[id] = append(d.statics[id], v)
				}
			}
			take(u2() * 9)
		case hprofInstance:
			id := u8()
			take(12)
			d.objects[id] = take(u4())
		case hprofObjects:
			id := u8()
			take(4)
			n := u4()
			take(8)
			d.objects[id] = take(n * 8)
		case hprofPrimitives:
			id := u8()
			take(4)
			n := u4()
			take(1)
			d.objects[id] = take(n * 8) // of longs
		default:
			t.Fatalf("tag %#x", tag)
		}
	}
}
