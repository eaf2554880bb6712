package retention

import (
	"io"
	"slices"
	"testing"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/heap/reflisting"
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

// TestLiveness: soft and final references keep objects alive, weak and phantom ones do not, garbage is unreached, and
// an object of another type at an address is not the one that was asked about.
func TestLiveness(t *testing.T) {
	b := referencestest.New()
	b.Class("app/Held", "next")
	want := map[int]Reach{}
	for strength, reach := range map[string]Reach{"soft": Live, "final": Live, "weak": Weak, "phantom": Weak} {
		b.Class("app/"+strength, "referent "+strength)
		ref, held, behind := b.New("app/"+strength), b.New("app/Held"), b.New("app/Held")
		b.Set(ref, "referent", held)
		b.Set(held, "next", behind)
		b.Root(ref, references.Root{Kind: references.JNIGlobal})
		want[ref], want[held], want[behind] = Live, reach, reach
	}
	dead, below := b.New("app/Held"), b.New("app/Held")
	b.Set(dead, "next", below)
	b.Set(below, "next", dead)
	want[dead], want[below] = Unreached, Unreached
	for i := range want {
		b.Sample(i, "app/Main", "allocate")
	}
	l, all := b.Listing(), blocks(b.Blocks())
	open := func() reflisting.Source { x := all; return &x }
	r, err := NewReaches(reflisting.All(open))
	if err != nil || len(r.GCs()) != 1 || r.GCs()[0] != 1 {
		t.Fatalf("%v, %v", r, err)
	}
	if x, err := r.After(2); x != nil || err != nil {
		t.Errorf("after a collection without a listing: %v, %v", x, err)
	}
	x, err := r.After(1)
	if err != nil || x == nil || !x.Complete() || x.Time != 2e9 {
		t.Fatalf("%+v, %v", x, err)
	}
	for i, reach := range want {
		word, typ := uint64(l.Addr[i]), l.Shape(i).Type
		if got := x.Of(word, typ); got != reach {
			t.Errorf("object %d, %s: %d, want %d", i, l.Shape(i).Name, got, reach)
		}
		if x.Of(word, typ+1) != Freed || x.Of(word+1, typ) != Freed || x.Of(word|1<<40, typ) != Freed {
			t.Errorf("object %d: another one is taken for it", i)
		}
	}
	replay := heap.NewReplay(open())
	c, err := replay.Next()
	if err != nil {
		t.Fatal(err)
	}
	old, types := x.BySpace(replay.View().Spaces(c.Spaces), Old)
	if gone := old.Dead(); old.Weak.Objects != 4 || old.Unreached.Objects != 2 || old.Unreached.Bytes != 2*32 ||
		gone.Objects != 6 || types[l.Shape(dead).Type].Weak.Objects != 4 {
		t.Errorf("in old space: %+v", old)
	}
	if young, _ := x.BySpace(replay.View().Spaces(c.Spaces), func(k uint64) bool { return !Old(k) }); young.All() !=
		(heap.Count{}) {
		t.Errorf("elsewhere: %+v", young)
	}
	got := x.Sampled(replay.View(), func(*heap.Sample) bool { return true })
	if got.Live.Samples != 8 || got.Weak.Samples != 4 || got.Unreached.Samples != 2 || got.Weak.Objects != 4 ||
		got.Unreached.Bytes != 2*32 {
		t.Errorf("samples %+v", got)
	}
}

// TestLivenessIncomplete: where roots are missing nothing is dead.
func TestLivenessIncomplete(t *testing.T) {
	b := referencestest.New()
	b.New("app/A")
	l := b.Listing()
	l.Missing = []string{"some roots"}
	x, err := newLiveness(l)
	if err != nil || x.Complete() {
		t.Errorf("%+v, %v", x, err)
	}
}

// TestCleaners: a cleaner that a list holds ends with its object, and so does what it alone holds. One whose object
// lives does not end, nor does what is also held elsewhere, nor another phantom reference.
func TestCleaners(t *testing.T) {
	b := referencestest.New()
	for _, class := range []string{"jdk/internal/ref/Cleaner", "app/Tracked"} {
		b.Class(class, "referent phantom", "next", "prev", "thunk")
	}
	b.Class("app/Held", "next")
	var all []int // cleaner, object, thunk of each
	ends := map[int]bool{}
	for i, class := range []string{"jdk/internal/ref/Cleaner", "jdk/internal/ref/Cleaner", "jdk/internal/ref/Cleaner",
		"app/Tracked"} {
		ref, object, thunk, behind := b.New(class), b.New("app/Held"), b.New("app/Held"), b.New("app/Held")
		b.Set(ref, "referent", object)
		b.Set(ref, "thunk", thunk)
		b.Set(thunk, "next", behind)
		if i > 0 {
			b.Set(all[len(all)-3], "next", ref)
		}
		all = append(all, ref, object, thunk)
		ends[ref], ends[thunk], ends[behind] = i != 1 && i != 3, i == 0, i == 0
		if i == 1 {
			b.Root(object, references.Root{Kind: references.JNIGlobal})
		}
		if i == 2 {
			b.Root(thunk, references.Root{Kind: references.JNIGlobal})
		}
	}
	b.Root(all[0], references.Root{Kind: references.JNIGlobal})
	checkEnds(t, b.Listing(), ends)
}

// checkEnds demands of objects, by number, that they live, and that some of them end.
func checkEnds(t *testing.T, l *references.Listing, ends map[int]bool) {
	t.Helper()
	addr, typ := slices.Clone(l.Addr), func(i int) uint32 { return l.Shapes[l.Code[i]].Type }
	x, err := newLiveness(l)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range ends {
		word := uint64(addr[i])
		if got := x.Ends(word, typ(i)); got != want || x.Of(word, typ(i)) != Live {
			t.Errorf("object %d: ends %v, want %v; reach %d", i, got, want, x.Of(word, typ(i)))
		}
	}
}

// TestWeakKeys: an entry of a map ends with the object that its key refers to weakly, and so does its value. Where that
// lives, or a collection has cleared the key and the map has not looked, the entry counts; so do the entries behind it.
func TestWeakKeys(t *testing.T) {
	const node, weakEntry = "java/util/concurrent/ConcurrentHashMap$Node", "java/util/WeakHashMap$Entry"
	b := referencestest.New()
	b.Class(node, "key", "val", "next")
	b.Class(weakEntry, "referent weak", "value", "next")
	b.Class("app/Key", "referent weak")
	b.Class("app/Held", "next")
	ends := map[int]bool{}
	before := map[string]int{}
	for i := range 9 {
		object, value, behind := b.New("app/Held"), b.New("app/Held"), b.New("app/Held")
		b.Set(value, "next", behind)
		class := []string{node, weakEntry, node}[i%3]
		entry := b.New(class)
		switch i % 3 {
		case 0:
			key := b.New("app/Key")
			b.Set(entry, "key", key)
			b.Set(entry, "val", value)
			if i != 6 {
				b.Set(key, "referent", object)
			}
			ends[key] = i == 0
		case 1:
			b.Set(entry, "value", value)
			if i != 7 {
				b.Set(entry, "referent", object)
			}
		case 2: // a map with strong keys
			b.Set(entry, "key", object)
			b.Set(entry, "val", value)
		}
		if i/3 == 1 {
			b.Root(object, references.Root{Kind: references.JNIGlobal})
		}
		stale := i == 0 || i == 1
		ends[entry], ends[value], ends[behind] = stale, stale, stale
		if was, ok := before[class]; ok {
			b.Set(was, "next", entry)
		} else {
			b.Root(entry, references.Root{Kind: references.JNIGlobal})
		}
		before[class] = entry
	}
	checkEnds(t, b.Listing(), ends)
}
