package graph

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/trace/references"
	"github.com/heapcam/heapcam/trace/references/referencestest"
)

var times = regexp.MustCompile(`×[0-9]+`)

// program is a small JVM: a class loader with classes, and the collections of the JDK by their shapes.
type program struct {
	*referencestest.Builder
	loader int
	leaked []int // the objects that are asked about
}

func newProgram() *program {
	b := referencestest.New()
	b.Class("jdk/AppClassLoader", "parent")
	b.Class("[Ljava/lang/Object;")
	b.Class("java/util/ArrayList", "elementData")
	b.Class("java/util/HashMap", "table")
	b.Class("java/util/HashMap$Node", "key", "value", "next")
	b.Class("java/util/LinkedList", "first", "last")
	b.Class("java/util/LinkedList$Node", "item", "next", "prev")
	b.Class("java/lang/ref/SoftReference", "referent soft", "queue")
	b.Class("java/lang/ref/WeakReference", "referent weak", "queue")
	b.Class("java/lang/Thread", "threadLocals", "target")
	b.Class("java/lang/ThreadLocal$ThreadLocalMap", "table")
	b.Class("java/lang/ThreadLocal$ThreadLocalMap$Entry", "referent weak", "value")
	p := &program{Builder: b, loader: b.New("jdk/AppClassLoader")}
	p.Root(p.loader, references.Root{Kind: references.LoaderRoot})
	return p
}

func (p *program) class(name string, statics ...string) int {
	m := p.Mirror(name, statics...)
	p.Add(p.loader, m)
	p.Set(m, "classLoader", p.loader)
	return m
}

func (p *program) leak(n int) (out []int) {
	for range n {
		out = append(out, p.New("app/Order"))
	}
	p.leaked = append(p.leaked, out...)
	return out
}

func (p *program) list(of []int) int {
	l, a := p.New("java/util/ArrayList"), p.New("[Ljava/lang/Object;")
	p.Set(l, "elementData", a)
	p.Add(a, of...)
	return l
}

func (p *program) mapOf(of []int) int {
	m, a := p.New("java/util/HashMap"), p.New("[Ljava/lang/Object;")
	p.Set(m, "table", a)
	for i, o := range of {
		n := p.New("java/util/HashMap$Node")
		p.Set(n, "value", o)
		if i%4 == 3 {
			p.Set(n, "next", p.New("java/util/HashMap$Node"))
		}
		p.Add(a, n)
	}
	return m
}

func (p *program) linked(of []int) int {
	l := p.New("java/util/LinkedList")
	before := -1
	for _, o := range of {
		n := p.New("java/util/LinkedList$Node")
		p.Set(n, "item", o)
		if before < 0 {
			p.Set(l, "first", n)
		} else {
			p.Set(before, "next", n)
			p.Set(n, "prev", before)
		}
		p.Set(l, "last", n)
		before = n
	}
	return l
}

// threadLocal makes a thread that has a value in a thread local.
func (p *program) threadLocal(i, value int) {
	th, m, a := p.New("java/lang/Thread"), p.New("java/lang/ThreadLocal$ThreadLocalMap"), p.New("[Ljava/lang/Object;")
	e := p.New("java/lang/ThreadLocal$ThreadLocalMap$Entry")
	p.Set(th, "threadLocals", m)
	p.Set(m, "table", a)
	p.Add(a, e)
	p.Set(e, "value", value)
	p.Root(th, references.Root{Kind: references.ThreadRoot, Thread: fmt.Sprintf("worker-%d", i)})
}

// knownGraphs are programs whose holder is known, with what heapcam is to print of it.
var knownGraphs = map[string]struct {
	make func(p *program)
	want []string // lines
}{
	"static map": {func(p *program) {
		p.Set(p.class("app/Shop", "cache"), "cache", p.mapOf(p.leak(100)))
	}, []string{"100.0 %  static app.Shop.cache → HashMap.table, then [] → Node.value"}},
	"listener list": {func(p *program) {
		p.Class("app/Bus", "listeners")
		p.Class("app/Listener", "order")
		bus := p.New("app/Bus")
		var of []int
		for _, o := range p.leak(50) {
			x := p.New("app/Listener")
			p.Set(x, "order", o)
			of = append(of, x)
		}
		p.Set(bus, "listeners", p.list(of))
		p.Set(p.class("app/Main", "bus"), "bus", bus)
	}, []string{"100.0 %  static app.Main.bus → Bus.listeners → ArrayList.elementData, then [] → Listener.order"}},
	"thread local": {func(p *program) {
		for i := range 40 {
			p.threadLocal(i, p.leak(1)[0])
		}
	}, []string{"100.0 %  (thread \"worker-0\") → Thread.threadLocals → ThreadLocalMap.table → [] → Entry.value"}},
	"stack local": {func(p *program) {
		p.Root(p.list(p.leak(30)), references.Root{Kind: references.StackLocal, Thread: "main", Class: "app/Main",
			Method: "run", Line: 12})
	}, []string{`100.0 %  (stack local of thread "main") app.Main.run:12 → ArrayList.elementData, then []`}},
	"JNI global": {func(p *program) {
		for _, o := range p.leak(64) {
			p.Root(o, references.Root{Kind: references.JNIGlobal})
		}
	}, []string{"100.0 %  (JNI global)"}},
	"class loader": {func(p *program) {
		p.Class("app/PluginClassLoader", "parent")
		reg := p.class("app/Plugins", "loaders")
		var loaders []int
		for i := range 30 {
			l := p.New("app/PluginClassLoader")
			m := p.Mirror(fmt.Sprintf("plugin/Main%d", i), "data")
			p.Set(m, "classLoader", l)
			p.Set(m, "data", p.leak(1)[0])
			p.Add(l, m)
			loaders = append(loaders, l)
		}
		p.Set(reg, "loaders", p.list(loaders))
	}, []string{"100.0 %  static app.Plugins.loaders → ArrayList.elementData, then static plugin.Main0.data"}},
	"object of a class loader": {func(p *program) { // nothing refers to the loaders
		p.Class("app/PluginClassLoader", "parent")
		var plugins []int
		for i := range 30 {
			name := fmt.Sprintf("plugin/Main%d", i)
			p.Class(name, "next")
			l, m := p.New("app/PluginClassLoader"), p.Mirror(name, "data")
			p.Set(m, "classLoader", l)
			p.Set(m, "data", p.leak(1)[0])
			p.Add(l, m)
			plugins = append(plugins, p.New(name))
		}
		p.Set(p.class("app/Plugins", "list"), "list", p.list(plugins))
	}, []string{"100.0 %  static app.Plugins.list → ArrayList.elementData, " +
		"then [] → Main0.(class) → static plugin.Main0.data"}},
	"linked queue": {func(p *program) {
		p.Set(p.class("app/Work", "queue"), "queue", p.linked(p.leak(500)))
	}, []string{"100.0 %  static app.Work.queue, then LinkedList.first → Node.next ×2 → Node.item"}},
	"queue in a tree": {func(p *program) {
		p.Class("java/util/TreeMap", "root")
		p.Class("java/util/TreeMap$Entry", "key", "value", "left", "right")
		var entries []int
		for i, o := range p.leak(500) {
			e := p.New("java/util/TreeMap$Entry")
			p.Set(e, "value", o)
			if i > 0 {
				p.Set(entries[(i-1)/2], [...]string{"right", "left"}[i%2], e)
			}
			entries = append(entries, e)
		}
		tree := p.New("java/util/TreeMap")
		p.Set(tree, "root", entries[0])
		p.Set(p.class("app/Work", "byTime"), "byTime", tree)
	}, []string{"100.0 %  static app.Work.byTime → TreeMap.root, then Entry.left/right ×2 → Entry.value"}},
	"cache of caches": {func(p *program) {
		var inner []int
		for range 25 {
			inner = append(inner, p.mapOf(p.leak(4)))
		}
		p.Set(p.class("app/Caches", "byUser"), "byUser", p.mapOf(inner))
	}, []string{"100.0 %  static app.Caches.byUser → HashMap.table, " +
		"then [] → Node.value → HashMap.table → [] → Node.value"}},
	"soft cache": {func(p *program) {
		var refs []int
		for _, o := range p.leak(40) {
			r := p.New("java/lang/ref/SoftReference")
			p.Set(r, "referent", o)
			refs = append(refs, r)
		}
		p.Set(p.class("app/Images", "cache"), "cache", p.mapOf(refs))
	}, []string{"100.0 %  static app.Images.cache → HashMap.table, " +
		"then [] → Node.value → SoftReference.referent (soft)"}},
	"two holders": {func(p *program) {
		p.Set(p.class("app/A", "map"), "map", p.mapOf(p.leak(60)))
		p.Set(p.class("app/B", "list"), "list", p.list(p.leak(40)))
	}, []string{" 60.0 %  static app.A.map → HashMap.table, then [] → Node.value",
		" 40.0 %  static app.B.list → ArrayList.elementData, then []"}},
}

func TestHolders(t *testing.T) {
	for name, c := range knownGraphs {
		t.Run(name, func(t *testing.T) {
			p := newProgram()
			c.make(p)
			g, err := Build(p.Listing(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var set []Member
			for _, o := range p.leaked {
				set = append(set, Member{o, 1})
			}
			h := g.Holders(set)
			got := lines(h)
			for i := range got {
				if strings.Contains(name, "queue") { // of the list, the example may be any element
					got[i] = times.ReplaceAllString(got[i], "×2")
				}
			}
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			checkShares(t, h, len(p.leaked))
		})
	}
}

func lines(h *Held) (out []string) {
	for _, l := range h.Lines() {
		out = append(out, fmt.Sprintf("%5.1f %%  %s", l.Share*100, l.Text))
	}
	return out
}

// checkShares: the shares are all of the set.
func checkShares(t *testing.T, h *Held, n int) {
	t.Helper()
	sum, objects := h.Rest+h.Weak+h.Unreached, 0
	for _, x := range h.Holders {
		sum += x.Share
		objects += x.Objects
	}
	if math.Abs(sum-1) > 1e-9 || objects > n {
		t.Errorf("shares add up to %v, objects to %d of %d", sum, objects, n)
	}
}

// TestInFlight: a few objects that running frames hold do not hide the holder of all others, and what is dead or held
// weakly is a line of its own.
func TestInFlight(t *testing.T) {
	p := newProgram()
	p.Set(p.class("app/Shop", "cache"), "cache", p.mapOf(p.leak(85)))
	for _, o := range p.leak(3) {
		p.Root(o, references.Root{Kind: references.StackLocal, Method: "handle", Class: "app/Server"})
	}
	p.leak(7) // nothing holds these
	w := p.New("java/lang/ref/WeakReference")
	p.Set(w, "referent", p.leak(5)[0])
	p.Root(w, references.Root{Kind: references.JNIGlobal})
	g, err := Build(p.Listing(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var set []Member
	for _, o := range p.leaked {
		set = append(set, Member{o, 2})
	}
	h := g.Holders(set)
	checkShares(t, h, 100)
	want := []string{" 85.0 %  static app.Shop.cache → HashMap.table, then [] → Node.value",
		"  3.0 %  in other ways, each below 5 %",
		"  1.0 %  weak or phantom references alone: the next collection can free them",
		" 11.0 %  nothing: garbage that has not been collected yet"}
	if got := lines(h); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if h.Holders[0].Objects != 85 || h.Holders[0].Class != "java.lang.Object[]" {
		t.Errorf("holder: %+v", h.Holders[0])
	}
}

// TestEvicts: a map has means to drop its entries if a second collection has their keys or values, if it is of a
// subclass of LinkedHashMap, or of a cache of a library. One plain collection has none.
func TestEvicts(t *testing.T) {
	for name, c := range map[string]struct {
		make func(p *program)
		want string
	}{
		"a map": {func(p *program) { p.Set(p.class("app/Shop", "m"), "m", p.mapOf(p.leak(60))) }, ""},
		"a map and an order": {func(p *program) {
			of := p.leak(60)
			p.Set(p.class("app/Shop", "m"), "m", p.mapOf(of))
			p.Set(p.class("app/Order", "all"), "all", p.list(of))
		}, "a second collection with the same elements or keys"},
		"a map and a linked order": {func(p *program) {
			of := p.leak(60)
			p.Set(p.class("app/Shop", "m"), "m", p.mapOf(of))
			p.Set(p.class("app/Order", "all"), "all", p.linked(of))
		}, "a second collection with the same elements or keys"},
		"a third of them in an order": {func(p *program) {
			of := p.leak(60)
			p.Set(p.class("app/Shop", "m"), "m", p.mapOf(of))
			p.Set(p.class("app/Order", "all"), "all", p.list(of[:20]))
		}, ""},
		"two fields of one object": {func(p *program) {
			of := p.leak(60)
			m := p.class("app/Shop", "m", "last")
			p.Set(m, "m", p.mapOf(of))
			p.Set(m, "last", of[59])
		}, ""},
		"Caffeine": {func(p *program) {
			p.Class("com/github/benmanes/caffeine/cache/BoundedLocalCache", "data")
			b := p.New("com/github/benmanes/caffeine/cache/BoundedLocalCache")
			p.Set(b, "data", p.mapOf(p.leak(60)))
			p.Set(p.class("app/Shop", "m"), "m", b)
		}, "means to drop entries, as a cache of a library"},
	} {
		p := newProgram()
		c.make(p)
		g, err := Build(p.Listing(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var set []Member
		for _, o := range p.leaked {
			set = append(set, Member{o, 1})
		}
		what, where := g.Evicts(set)
		if what != c.want || (where == "") != (what == "") {
			t.Errorf("%s: %q, %s", name, what, where)
		}
	}
}

// TestAlike has eight threads that each hold a map: none holds most of the set, but all hold it in the same way. A
// static list that holds as much as one of them is not among them.
func TestAlike(t *testing.T) {
	p := newProgram()
	for i := range 8 {
		p.threadLocal(i, p.mapOf(p.leak(20)))
	}
	p.Set(p.class("app/Shop", "orders"), "orders", p.list(p.leak(40)))
	g, err := Build(p.Listing(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var set []Member
	for _, o := range p.leaked {
		set = append(set, Member{o, 1})
	}
	n, share, each := g.Holders(set).Alike()
	const want = "(thread) → Thread.threadLocals → ThreadLocalMap.table → [] → Entry.value → HashMap.table, then " +
		"[] → Node.value"
	if n != 8 || math.Abs(share-0.8) > 1e-9 || each != want {
		t.Errorf("%d, %g, %q", n, share, each)
	}
	if n, share, each := g.Holders(nil).Alike(); n != 0 || share != 0 || each != "" {
		t.Errorf("of nothing: %d, %g, %q", n, share, each)
	}
}
