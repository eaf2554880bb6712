package retention

import (
	"slices"
	"testing"

	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/trace/references"
	"github.com/heapcam/heapcam/trace/references/referencestest"
)

// TestLabels: what classifiers see of the references of each object.
func TestLabels(t *testing.T) {
	b := referencestest.New()
	b.Class("[Lapp/Order;")
	b.Class("app/AppClassLoader", "parent")
	b.Class("app/Order", "next")
	b.Class("java/lang/ref/WeakReference", "referent weak")
	loader, m := b.New("app/AppClassLoader"), b.Mirror("app/Shop", "cache", "weak")
	b.Root(loader, references.Root{Kind: references.LoaderRoot})
	b.Add(loader, m)
	table, weak := b.New("[Lapp/Order;"), b.New("java/lang/ref/WeakReference")
	b.Set(m, "cache", table)
	b.Set(m, "weak", weak)
	first, second, local, fleeting, dead := b.New("app/Order"), b.New("app/Order"), b.New("app/Order"),
		b.New("app/Order"), b.New("app/Order")
	b.Add(table, first, -1, -1, -1)
	b.Set(first, "next", second)
	b.Root(local, references.Root{Kind: references.StackLocal, Thread: "main", Class: "app/Main", Method: "run"})
	b.Set(weak, "referent", fleeting)
	b.Set(dead, "next", second)
	g, err := graph.Build(b.Listing(), nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &Heap{Graph: g}
	labels, refs := h.Labels(classify.AttrRefs)
	cache := "static app.Shop.cache"
	for i, want := range map[int]classify.Refs{
		table: {Reach: "strong", Root: "class loader", Holder: cache, Retained: 96, To: []string{"app.Order"},
			From: []string{"java.lang.Class"}, Health: healthSparse},
		first: {Reach: "strong", Root: "class loader", Holder: cache, Retained: 64, To: []string{"app.Order"},
			From: []string{"app.Order[]"}, Health: healthNone},
		second: {Reach: "strong", Root: "class loader", Holder: cache, Retained: 32, From: []string{"app.Order"},
			Health: healthNone},
		local: {Reach: "strong", Root: "stack local", Holder: `(stack local of thread "main") app.Main.run`,
			Retained: 32, Health: healthNone},
		fleeting: {Reach: "weak", Root: "class loader", Holder: notHeld,
			From: []string{"java.lang.ref.WeakReference"}, Health: healthNone},
		dead: {Reach: classify.Unreachable, Root: classify.Unreachable, Holder: notHeld, To: []string{"app.Order"},
			Health: healthNone},
	} {
		got := refs[labels.Of(uint64(g.L.Addr[i]))]
		if got.Reach != want.Reach || got.Root != want.Root || got.Holder != want.Holder ||
			!slices.Equal(got.To, want.To) || !slices.Equal(got.From, want.From) || got.Health != want.Health ||
			got.Retained != want.Retained {
			t.Errorf("object %d: %+v, want %+v", i, got, want)
		}
	}
	if labels.Of(1<<40) != 0 || labels.Of(uint64(g.L.Addr[0])+1) != 0 {
		t.Error("a label where no object is")
	}
}

// TestHealth: how collections use their slots.
func TestHealth(t *testing.T) {
	b := referencestest.New()
	b.Class("[Ljava/lang/Object;")
	b.Class("java/util/ArrayList", "elementData")
	b.Class("java/util/HashMap", "keySet", "table")
	b.Class("java/util/HashSet", "map")
	b.Class("java/util/TreeMap", "root")
	array := func(used, free int) int {
		a := b.New("[Ljava/lang/Object;")
		for range used {
			b.Add(a, a)
		}
		for range free {
			b.Add(a, -1)
		}
		return a
	}
	of := func(class, field string, to int) int {
		x := b.New(class)
		if to >= 0 {
			b.Set(x, field, to)
		}
		return x
	}
	node := b.New("app/Node")
	want := map[int]string{
		array(0, 0): healthEmpty, array(0, 10): healthEmpty, array(1, 3): healthSparse, array(2, 3): healthUsed,
		array(1, 255): healthSparse, array(1, 256): healthOversized,
		of("java/util/ArrayList", "elementData", array(0, 10)):                           healthEmpty,
		of("java/util/ArrayList", "elementData", array(10, 0)):                           healthUsed,
		of("java/util/HashMap", "table", -1):                                             healthEmpty,
		of("java/util/HashSet", "map", of("java/util/HashMap", "table", array(2, 1000))): healthOversized,
		of("java/util/TreeMap", "root", node):                                            healthUsed,
		of("java/util/TreeMap", "root", -1):                                              healthEmpty,
		node:                                                                             healthNone,
		of("java/util/HashSet", "map", of("java/util/HashSet", "map", b.New("java/util/HashSet"))): healthEmpty,
	}
	g, err := graph.Build(b.Listing(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, health := range want {
		if got := (&Heap{Graph: g}).Health(i); got != health {
			t.Errorf("object %d (%s): %s, want %s", i, g.L.Shape(i).Name, got, health)
		}
	}
}
