package analysis

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/classify/grouping"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// The reference implementation: one struct an object, maps, no cleverness. It shares nothing with package classify but
// the text of keys.

type refObject struct {
	heap.Object
	class, loader, space, kind string
	array                      bool
	addr, age                  uint64
	stack                      []string
	thread                     string
	sampled, before            bool
}

type refNode struct {
	objects, bytes uint64
	children       map[string]*refNode
}

func refObjects(r *heap.Replay, c *heap.Collection) []refObject {
	var out []refObject
	spaces := r.View().Spaces(c.Spaces)
	r.State.Each(func(o heap.Object) bool {
		x := refObject{Object: o, class: r.TypeName(o.Type), loader: "bootstrap", addr: r.JVM.HeapBase + o.Addr*8,
			age: c.GC - uint64(o.Birth), space: "(no space)"}
		ty := r.Types[uint64(o.Type)]
		if ty.Loader != 0 {
			x.loader = fmt.Sprintf("%s #%d", r.Loaders[ty.Loader].Name, ty.Loader)
			if r.Loaders[ty.Loader].Name == "" {
				x.loader = fmt.Sprintf("(unnamed) #%d", ty.Loader)
			}
		}
		x.array = ty.Flags&trace.TypeArray != 0
		for _, s := range spaces {
			if o.Addr >= s.Start && o.Addr < s.End {
				x.space, x.kind = SpaceName(r.Symbols,
					s), map[uint64]string{trace.SpaceEden: "eden", trace.SpaceSurvivor: "survivor"}[s.Kind]
				if x.kind == "" {
					x.kind = "old"
				}
			}
		}
		if s := r.Live.Get(o.Sample); s != nil {
			x.sampled = true
			x.thread = r.Threads[s.Thread].Name
			for _, f := range sites.Stack(r.Symbols, s.Frame, 64) {
				x.stack = append(x.stack, f.String())
			}
		}
		x.before = uint64(o.Birth) <= r.First && r.JVM.Flags&trace.JVMAtStart == 0
		out = append(out, x)
		return true
	})
	return out
}

func (o *refObject) noSite() string {
	if o.before {
		return "(before the recording)"
	}
	return "(site unknown)"
}

func (o *refObject) least(mark string) string {
	if o.AtLeast {
		return mark
	}
	return ""
}

func pow2(n uint64) string {
	if n < 2 {
		return fmt.Sprint(n)
	}
	l := bits.Len64(n)
	return fmt.Sprintf("%d–%d", 1<<(l-1), 1<<l-1)
}

// refKeys are the reference's classifiers: path for a hierarchy, else many keys.
var refKeys = map[string]struct {
	path bool
	keys func(o *refObject) []string
}{
	"type":        {false, func(o *refObject) []string { return []string{o.class} }},
	"type(short)": {false, func(o *refObject) []string { p := strings.Split(o.class, "."); return p[len(p)-1:] }},
	"package": {false, func(o *refObject) []string {
		if i := strings.LastIndex(o.class, "."); i > 0 {
			return []string{o.class[:i]}
		}
		return []string{"(no package)"}
	}},
	"packages": {true, func(o *refObject) []string {
		if p := strings.Split(o.class, "."); len(p) > 1 {
			return p[:len(p)-1]
		}
		return []string{"(no package)"}
	}},
	"loader": {false, func(o *refObject) []string { return []string{o.loader} }},
	"kind": {false, func(o *refObject) []string {
		switch {
		case !o.array:
			return []string{"instance"}
		case o.Length < 255:
			return []string{"small array"}
		}
		return []string{"big array"}
	}},
	"length": {false, func(o *refObject) []string {
		if !o.array {
			return []string{"(not an array)"}
		}
		return []string{fmt.Sprint(o.Length)}
	}},
	"size":        {false, func(o *refObject) []string { return []string{fmt.Sprint(o.Words*8, " B")} }},
	"sizeclass":   {false, func(o *refObject) []string { return []string{pow2(o.Words*8) + " B"} }},
	"age":         {false, func(o *refObject) []string { return []string{o.least("≥ ") + fmt.Sprint(o.age)} }},
	"ages":        {false, func(o *refObject) []string { return []string{o.least("≥ ") + pow2(o.age)} }},
	"birth":       {false, func(o *refObject) []string { return []string{o.least("≤ ") + fmt.Sprint("gc ", o.Birth)} }},
	"space":       {false, func(o *refObject) []string { return []string{o.space} }},
	"address(4k)": {false, func(o *refObject) []string { return []string{fmt.Sprintf("%#016x", o.addr/4096*4096)} }},
	"thread": {false, func(o *refObject) []string {
		if !o.sampled {
			return []string{o.noSite()}
		}
		return []string{o.thread}
	}},
	"site(2)": {true, func(o *refObject) []string {
		if !o.sampled {
			return []string{o.noSite()}
		}
		if len(o.stack) == 0 {
			return []string{"(no Java frame)"}
		}
		return o.stack[:min(2, len(o.stack))]
	}},
	"confidence": {false, func(o *refObject) []string {
		if !o.sampled {
			return []string{o.noSite()}
		}
		return []string{"exact"}
	}},
	// Expressions.
	`age > 2 ? "old" : "young"`: {false, func(o *refObject) []string {
		if o.age > 2 {
			return []string{"old"}
		}
		return []string{"young"}
	}},
	`filter([size % 16 == 0 ? "even" : "", size > 64 ? "large" : "", array ? "array" : ""], # != "")`: {
		false,
		func(o *refObject) (out []string) {
			if o.Words%2 == 0 {
				out = append(out, "even")
			}
			if o.Words > 8 {
				out = append(out, "large")
			}
			if o.array {
				out = append(out, "array")
			}
			return out
		},
	},
	`array ? path("array", kind, length) : path("instance")`: {true, func(o *refObject) []string {
		if !o.array {
			return []string{"instance"}
		}
		k := "small array"
		if o.Length >= 255 {
			k = "big array"
		}
		return []string{"array", k, fmt.Sprint(o.Length)}
	}},
}

var refFilters = map[string]func(o *refObject) bool{
	`size >= 40`:              func(o *refObject) bool { return o.Words >= 5 },
	`age < 3 and not atleast`: func(o *refObject) bool { return o.age < 3 && !o.AtLeast },
	`spacetype == "old"`:      func(o *refObject) bool { return o.kind == "old" },
	`site.known`:              func(o *refObject) bool { return o.sampled },
	`type startsWith "java" || length > 10`: func(o *refObject) bool {
		return strings.HasPrefix(o.class, "java") ||
			o.Length > 10
	},
}

func (n *refNode) add(o *refObject, by []string, path []string, isPath bool) {
	n.objects++
	n.bytes += o.Words * 8
	if isPath && len(path) > 0 {
		n.child(len(by)+1, path[0]).add(o, by, path[1:], true)
		return
	}
	if len(by) == 0 {
		return
	}
	c := refKeys[by[0]]
	keys := c.keys(o)
	if len(keys) == 0 {
		keys = []string{"(others)"}
	}
	if c.path {
		n.child(len(by), keys[0]).add(o, by[1:], keys[1:], true)
		return
	}
	for _, k := range keys {
		n.child(len(by), k).add(o, by[1:], nil, false)
	}
}

// child is identified by the level that gives its key.
func (n *refNode) child(left int, key string) *refNode {
	k := fmt.Sprint(left, " ", key)
	if n.children == nil {
		n.children = map[string]*refNode{}
	}
	if n.children[k] == nil {
		n.children[k] = &refNode{}
	}
	return n.children[k]
}

// differs says how a tree is not the reference's, "" if it is.
func differs(n *grouping.Node, want *refNode, levels int, at string) string {
	if n.Objects != want.objects || n.Bytes != want.bytes || n.Estimated {
		return fmt.Sprintf("%s: %d objects, %d bytes (estimated %v), reference %d, %d", at, n.Objects, n.Bytes,
			n.Estimated, want.objects, want.bytes)
	}
	got := map[string]bool{}
	for i, c := range n.Children {
		k := fmt.Sprint(levels-c.Level, " ", c.Key)
		w := want.children[k]
		if w == nil || got[k] {
			return fmt.Sprintf("%s/%s: reference does not have it, or once only", at, c.Key)
		}
		got[k] = true
		if i > 0 && c.Bytes > n.Children[i-1].Bytes {
			return at + ": not sorted"
		}
		if why := differs(c, w, levels, at+"/"+c.Key); why != "" {
			return why
		}
	}
	if len(got) != len(want.children) {
		return fmt.Sprintf("%s: %d children, reference %d", at, len(got), len(want.children))
	}
	return ""
}

// everySample makes every sample stand for itself alone, as at interval 0.
func everySample(r *heap.Replay) {
	for _, s := range r.Live.All() {
		s.Weight = 1
	}
}

// TestGroupAgainstReference compares the tree of every list of classifiers and every filter with the reference, on
// random recordings of every collector and both depths, and the lossless list of a node against the node.
func TestGroupAgainstReference(t *testing.T) {
	names := slices.Sorted(maps.Keys(refKeys))
	filters := slices.Sorted(maps.Keys(refFilters))
	lib := classify.NewLibrary()
	nodes := 0
	rapid.Check(t, func(t *rapid.T) {
		bs := analysistest.Recording(rapid.Uint64Range(1, 1<<20).Draw(t, "seed"),
			rapid.Uint64Range(1, 3).Draw(t, "collector"),
			rapid.Uint64Range(2, 3).Draw(t, "depth"), rapid.IntRange(3, 10).Draw(t, "steps"))
		by := rapid.SliceOfN(rapid.SampledFrom(names), 1, 3).Draw(t, "by")
		where := rapid.SliceOfN(rapid.SampledFrom(filters), 0, 1).Draw(t, "where")
		r := heap.NewReplay(&analysistest.Source{B: bs})
		if err := collection.Each(r, func(c *heap.Collection) bool {
			if !c.Known {
				return true
			}
			everySample(r)
			cs, err := lib.By(strings.Join(by, ", "))
			if err != nil {
				t.Fatal(err)
			}
			var fs []classify.Filter
			for _, w := range where {
				f, err := classify.NewFilter(w)
				if err != nil {
					t.Fatal(err)
				}
				fs = append(fs, f)
			}
			world, spaces := World(r.View(), c)
			g, err := Group(r.View(), c, world, spaces, cs, fs)
			if err != nil {
				t.Fatal(err)
			}
			want := &refNode{}
			objs := refObjects(r, c)
		object:
			for i := range objs {
				for _, w := range where {
					if !refFilters[w](&objs[i]) {
						continue object
					}
				}
				want.add(&objs[i], by, nil, false)
			}
			if why := differs(g.Tree, want, len(by), ""); why != "" {
				t.Fatalf("collection %d by %v where %v: %s", c.GC, by, where, why)
			}
			if len(g.Tree.Children) > 0 {
				n := g.Tree.Children[rapid.IntRange(0, len(g.Tree.Children)-1).Draw(t, "node")]
				objects, bytes := uint64(0), uint64(0)
				g.List(r.View(), n, spaces, cs, fs, func(l ListedObject) bool {
					objects++
					bytes += l.Bytes
					return true
				})
				if objects != n.Objects || bytes != n.Bytes {
					t.Fatalf("list of %s: %d objects, %d bytes of %d, %d", n.Key, objects, bytes, n.Objects, n.Bytes)
				}
				nodes++
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
	})
	if nodes < 100 {
		t.Fatalf("only %d nodes were listed", nodes)
	}
}

// TestGroupEstimates: whatever is estimated adds up to what is exact, within rounding, and lies within its bounds; type
// stays exact.
func TestGroupEstimates(t *testing.T) {
	lib := classify.NewLibrary()
	estimated := 0
	rapid.Check(t, func(t *rapid.T) {
		bs := analysistest.Recording(rapid.Uint64Range(1, 1<<20).Draw(t, "seed"),
			rapid.Uint64Range(1, 3).Draw(t, "collector"),
			rapid.Uint64Range(2, 3).Draw(t, "depth"), rapid.IntRange(3, 12).Draw(t, "steps"))
		spec := rapid.SampledFrom([]string{"type, site(2)", "site, type", "thread, ages, type", "confidence",
			"spacetype, site(1), ages"}).
			Draw(t, "by")
		r := heap.NewReplay(&analysistest.Source{B: bs})
		if err := collection.Each(r, func(c *heap.Collection) bool {
			if !c.Known {
				return true
			}
			cs, err := lib.By(spec)
			if err != nil {
				t.Fatal(err)
			}
			world, spaces := World(r.View(), c)
			g, err := Group(r.View(), c, world, spaces, cs, nil)
			if err != nil {
				t.Fatal(err)
			}
			if g.Objects != uint64(r.State.Objects()) || g.Bytes != r.State.Bytes() {
				t.Fatalf("%d objects, %d bytes of %d, %d", g.Objects, g.Bytes, r.State.Objects(), r.State.Bytes())
			}
			g.Tree.Walk(func(path []string, n *grouping.Node) bool {
				if n.Estimated {
					estimated++
					if *n.ObjLow > n.Objects+1 || *n.ObjHigh+1 < n.Objects || *n.BytesLow > n.Bytes+1 ||
						*n.BytesHigh+1 < n.Bytes {
						t.Fatalf("%v: %d objects [%d, %d], %d bytes [%d, %d]", path, n.Objects, *n.ObjLow, *n.ObjHigh,
							n.Bytes, *n.BytesLow, *n.BytesHigh)
					}
				}
				var o, b uint64
				for _, x := range n.Children {
					o += x.Objects
					b += x.Bytes
				}
				slack := uint64(len(n.Children) + 1)
				if len(n.Children) > 0 && (o > n.Objects+slack || b > n.Bytes+slack) {
					t.Fatalf("%v: children have %d objects, %d bytes of %d, %d", path, o, b, n.Objects, n.Bytes)
				}
				if len(path) == 0 && (o+slack < n.Objects || b+slack < n.Bytes) {
					t.Fatalf("the first level has %d objects, %d bytes of %d, %d", o, b, n.Objects, n.Bytes)
				}
				return true
			})
			return true
		}); err != nil {
			t.Fatal(err)
		}
	})
	if estimated < 100 {
		t.Fatalf("only %d estimates", estimated)
	}
}
