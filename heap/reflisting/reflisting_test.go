package reflisting

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/references"
	"github.com/heapcam/heapcam/trace/references/referencestest"
)

type blocks []trace.Block

func (b *blocks) Next() (trace.Block, error) {
	if len(*b) == 0 {
		return trace.Block{}, io.EOF
	}
	x := (*b)[0]
	*b = (*b)[1:]
	return x, nil
}

func program() *referencestest.Builder {
	b := referencestest.New()
	b.Class("[Ljava/lang/Object;")
	b.Class("app/ClassLoader", "parent")
	b.Class("app/Node", "value", "next strong Lapp/Node;")
	b.Class("java/lang/ref/WeakReference", "referent weak", "queue")
	loader := b.New("app/ClassLoader")
	m := b.Mirror("app/Node", "first", "last")
	b.Add(loader, m, b.Mirror("app/Unused"))
	before := m
	for range 40 {
		n := b.New("app/Node")
		if before == m {
			b.Set(m, "first", n)
		} else {
			b.Set(before, "next", n)
		}
		a := b.New("[Ljava/lang/Object;")
		b.Add(a, n, -1, loader)
		b.Set(n, "value", a)
		before = n
	}
	w := b.New("java/lang/ref/WeakReference")
	b.Set(w, "referent", before)
	b.Root(loader, references.Root{Kind: references.LoaderRoot})
	b.Root(w, references.Root{Kind: references.StackLocal, Thread: "main", Class: "app/Main", Method: "run", Line: 7})
	return b
}

// TestRead: what the parts say is put together as it was.
func TestRead(t *testing.T) {
	p := program()
	want := p.Listing()
	all := blocks(p.Blocks())
	find := all
	found, err := Find(&find)
	if err != nil || len(found) != 1 || !found[0].Whole || found[0].Objects != uint64(len(want.Addr)) {
		t.Fatalf("%+v, %v", found, err)
	}
	read := all
	got, _, err := Read(&read, found[0].Number)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Addr, want.Addr) || !reflect.DeepEqual(got.Words, want.Words) ||
		!reflect.DeepEqual(got.First, want.First) || !reflect.DeepEqual(got.Slots, want.Slots) ||
		!reflect.DeepEqual(got.Roots, want.Roots) || got.Base != want.Base {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	for i := range want.Addr {
		g, w := *got.Shape(i), *want.Shape(i)
		switch w.Kind {
		case references.Mirror:
			w.Rest = restResolved
		case references.ObjectArray:
			w.Rest = restArray
		}
		g.Class, w.Class = 0, 0 // TestClassNumbers
		if len(g.Fields)+len(w.Fields) == 0 {
			g.Fields, w.Fields = nil, nil
		}
		if !reflect.DeepEqual(g, w) {
			t.Fatalf("object %d: got %+v, want %+v", i, g, w)
		}
	}
	for drop := range all {
		if all[drop].Kind != trace.KindRefs {
			continue
		}
		torn := append(append(blocks{}, all[:drop]...), all[drop+1:]...)
		again := torn
		if found, err := Find(&torn); err != nil || len(found) > 0 && found[0].Whole {
			t.Errorf("without block %d: %+v, %v", drop, found, err)
		}
		if _, _, err := Read(&again, 1); !errors.Is(err, references.ErrIncomplete) {
			t.Errorf("without block %d: %v", drop, err)
		}
	}
}

func TestChoose(t *testing.T) {
	about := func(gc uint64, whole bool, refused string) About {
		return About{References: trace.References{GC: gc, Refused: refused}, Number: gc, Whole: whole}
	}
	all := []About{about(3, true, ""), about(5, false, ""), about(7, true, ""), about(9, true, "too large")}
	for gc, want := range map[uint64]uint64{3: 3, 6: 3, 7: 7, 1 << 60: 7} {
		if got, err := Choose(all, gc); err != nil || got.Number != want {
			t.Errorf("collection %d: %d, %v", gc, got.Number, err)
		}
	}
	for _, bad := range [][]About{nil, all[1:2], all[3:]} {
		if _, err := Choose(bad, 1<<60); !errors.Is(err, ErrNone) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if _, err := Choose(all, 2); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

// TestClassNumbers: the shape of objects has the number of the mirror that stands for their class.
func TestClassNumbers(t *testing.T) {
	b := referencestest.New()
	b.Class("app/A", "x")
	a := b.New("app/A")
	m, other := b.Mirror("app/A"), b.Mirror("app/B")
	all := blocks(b.Blocks())
	l, _, err := Read(&all, 1)
	if err != nil {
		t.Fatal(err)
	}
	if n := l.Shape(a).Class; n == 0 || l.Shape(m).Class != n || l.Shape(other).Class == n {
		t.Errorf("numbers %d, %d, %d", n, l.Shape(m).Class, l.Shape(other).Class)
	}
}

// TestManyTypes: objects of types whose numbers end alike, and those with references of loaders and classes in between,
// keep their own shapes and slots.
func TestManyTypes(t *testing.T) {
	b := referencestest.New()
	b.Class("[Ljava/lang/Object;")
	b.Class("app/ClassLoader", "parent")
	fields := []string{"a", "b", "c"}
	const types = 1100
	for i := range types {
		b.Class(fmt.Sprintf("app/C%d", i), fields[:i%4]...)
	}
	before := -1
	for round := range 3 {
		for i := range types {
			o := b.New(fmt.Sprintf("app/C%d", (i*37+round)%types))
			if n := (i*37 + round) % types % 4; n > 0 && before >= 0 {
				b.Set(o, fields[n-1], before)
			}
			before = o
			if i%100 == 0 {
				b.New("app/ClassLoader") // of no classes
				l, m := b.New("app/ClassLoader"), b.Mirror(fmt.Sprintf("app/C%d", i), "x")
				b.Add(l, m)
				b.Add(b.New("[Ljava/lang/Object;"), l, m, before)
			}
		}
	}
	want, all := b.Listing(), blocks(b.Blocks())
	got, _, err := Read(&all, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Addr, want.Addr) || !reflect.DeepEqual(got.Words, want.Words) ||
		!reflect.DeepEqual(got.First, want.First) || !reflect.DeepEqual(got.Slots, want.Slots) {
		t.Error("other columns")
	}
	for i := range want.Addr {
		g, w := got.Shape(i), *want.Shape(i)
		if w.Kind == references.Loader && len(want.Of(i)) == 1 { // only its classes say that it is one
			w.Kind = references.Instance
		}
		if g.Name != w.Name || g.Kind != w.Kind || g.Of != w.Of || len(g.Fields) != len(w.Fields) {
			t.Fatalf("object %d: got %+v, want %+v", i, g, w)
		}
	}
}
