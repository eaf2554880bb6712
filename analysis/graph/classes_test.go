package graph

import (
	"slices"
	"testing"

	"github.com/heapcam/heapcam/trace/references"
	"github.com/heapcam/heapcam/trace/references/referencestest"
)

// TestAddClasses: objects of a class that may be unloaded refer to its mirror behind their fields and before their
// elements; all other slots stay, and objects of lasting classes get none.
func TestAddClasses(t *testing.T) {
	b := referencestest.New()
	app := "jdk/internal/loader/ClassLoaders$AppClassLoader"
	for _, c := range []string{app, "app/PluginClassLoader"} {
		b.Class(c, "parent")
	}
	b.Class("app/Main", "x")
	b.Class("plugin/Node", "x", "y")
	b.Class("[Lplugin/Node;")
	b.Class("plugin/Ref", "referent weak")
	lasting, plugin := b.New(app), b.New("app/PluginClassLoader")
	main := b.New("app/Main")
	b.Add(lasting, b.Mirror("app/Main"), b.Mirror("app/PluginClassLoader"))
	node, array, ref := b.Mirror("plugin/Node"), b.Mirror("[Lplugin/Node;"), b.Mirror("plugin/Ref")
	b.Add(plugin, node, array, ref)
	n, a, r, boot := b.New("plugin/Node"), b.New("[Lplugin/Node;"), b.New("plugin/Ref"), b.Mirror("java/util/List")
	b.Set(n, "y", a)
	b.Add(a, n, -1, main)
	b.Set(r, "referent", n)
	b.Set(main, "x", n)
	b.Root(boot, references.Root{Kind: references.LoaderRoot})
	before, l := b.Listing(), b.Listing()
	l.Shapes = slices.Clone(l.Shapes)
	addClasses(nil, l)
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	slot := func(i int) uint32 { return before.Addr[i] + 1 }
	want := map[int][]uint32{n: {0, slot(a), slot(node)}, a: {slot(array), slot(n), 0, slot(main)},
		r: {slot(n), slot(ref)}}
	for i := range before.Addr {
		x, ok := want[i]
		if !ok {
			x = before.Of(i)
		}
		if got := l.Of(i); !slices.Equal(got, x) {
			t.Errorf("object %d (%s): slots %v, want %v", i, before.Shape(i).Name, got, x)
		}
		if has := slices.Contains(l.Shape(i).Fields, references.ClassField); has != ok {
			t.Errorf("object %d: a field for its class: %v", i, has)
		}
	}
}
