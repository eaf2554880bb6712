package grouping

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/trace"
)

// crowd is a heap large enough for two goroutines.
func crowd() (*classify.World, []classify.Tuple) {
	w := &classify.World{First: 3, GC: 9, Types: map[uint64]trace.Type{}, Methods: map[uint64]trace.Method{},
		Frames: map[uint64]trace.Frame{}}
	for i := range uint64(40) {
		w.Types[i] = trace.Type{ID: i, Size: 16, Name: fmt.Sprintf("p%d/C%d", i%7, i)}
		w.Methods[i] = trace.Method{ID: i, Class: "Lq/A;", Name: fmt.Sprintf("m%d", i), File: "A.java"}
	}
	for i := range uint64(900) {
		w.Frames[i+1] = trace.Frame{ID: i + 1, Parent: (i + 1) / 3, Method: i % 40}
	}
	var ts []classify.Tuple
	for i := range uint32(2*sideBySide + 100) {
		x := classify.Tuple{Type: i * 7 % 40, Birth: i % 9, Space: -1, Objects: uint64(i%3 + 1), AtLeast: i%11 == 0}
		if x.Bytes = 16 * x.Objects; i%4 > 0 {
			x.Sampled, x.Frame = true, uint64(i%900+1)
			x.WObjects.Add(1, float64(i%5+1))
			x.WBytes.Add(16, float64(i%5+1))
		}
		ts = append(ts, x)
	}
	return w, ts
}

// TestSideBySide builds a tree by two goroutines, and the same by one.
func TestSideBySide(t *testing.T) {
	w, ts := crowd()
	for _, spec := range []string{"type, site", "site(4), type", "packages, ages, site(2)", "confidence, type"} {
		by, err := classify.NewLibrary().By(spec)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Build(w, ts, by, nil)
		if err != nil {
			t.Fatal(err)
		}
		b := newBuilder(w, ts, by)
		b.alone = true
		want, err := b.node("heap", b.all(), -1, 0, 0, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		want.clamp()
		if a, b := rows(got), rows(want); !slices.Equal(a, b) {
			t.Errorf("%s: %d rows, and %d by one goroutine, or others", spec, len(a), len(b))
		}
	}
}

// rows are the nodes of a tree with all that they say.
func rows(n *Node) (out []string) {
	n.Walk(func(path []string, n *Node) bool {
		out = append(out, fmt.Sprint(path, row(n)))
		return true
	})
	return out
}

func row(n *Node) string {
	b, _ := json.Marshal(Node{Key: n.Key, Objects: n.Objects, Bytes: n.Bytes, Estimated: n.Estimated,
		Samples: n.Samples, ObjLow: n.ObjLow, ObjHigh: n.ObjHigh, BytesLow: n.BytesLow, BytesHigh: n.BytesHigh})
	return fmt.Sprint(n.Level, string(b))
}

// TestBegin asks trees for their groups in several orders and compares them with those that Build makes at once.
func TestBegin(t *testing.T) {
	w, ts := crowd()
	for i, c := range []struct{ by, filter string }{{"type, site", ""}, {"site(4), type", ""},
		{"packages, ages, site(2)", "age >= 3"}, {"confidence, type", ""}, {"type, ages", ""},
		{"ages, site, thread", `site.has("q.A.m1")`}, {"packages, type", `thread == "none"`},
		{"type, site", "size > 1000"}} {
		by, err := classify.NewLibrary().By(c.by)
		if err != nil {
			t.Fatal(err)
		}
		var fs []classify.Filter
		if c.filter != "" {
			f, err := classify.NewFilter(c.filter)
			if err != nil {
				t.Fatal(err)
			}
			fs = append(fs, f)
		}
		if i == 3 { // nothing stands for anything else
			for i := range ts {
				ts[i].WObjects, ts[i].WBytes = stats.Total{}, stats.Total{}
				ts[i].Sampled = true
				ts[i].WObjects.Add(float64(ts[i].Objects), 1)
				ts[i].WBytes.Add(float64(ts[i].Bytes), 1)
			}
		}
		want, err := Build(w, ts, by, fs)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := Begin(w, ts, by, fs)
		if err != nil {
			t.Fatal(err)
		}
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		var same func(got, want *Node)
		same = func(got, want *Node) {
			if a, b := row(got), row(want); a != b {
				t.Fatalf("%s: %s is %s, not %s", c.by, want.Key, a, b)
			}
			if rng.IntN(50) == 0 {
				all, err := tree.All(got)
				must(err)
				if a, b := rows(all), rows(want); !slices.Equal(a, b) {
					t.Fatalf("%s: %d rows below %s, not %d, or others", c.by, len(a), want.Key, len(b))
				}
			}
			least := uint64(0)
			if n := len(want.Children); n > 0 {
				least = want.Children[rng.IntN(n)].Bytes
			}
			above, err := tree.Above(got, least)
			must(err)
			counts, err := tree.Count(got)
			must(err)
			kids, err := tree.Children(got, 0, 1<<20)
			must(err)
			some, err := tree.Children(got, 2, 3)
			must(err)
			if len(kids) != len(want.Children) || counts[0] != len(kids) || !slices.Equal(above, kids[:len(above)]) ||
				len(above) < len(kids) && kids[len(above)].Bytes >= least ||
				!slices.Equal(some, kids[min(2, len(kids)):min(5, len(kids))]) {
				t.Fatalf("%s: %s has %d children, not %d, or others", c.by, want.Key, len(kids), len(want.Children))
			}
			for i, k := range kids {
				same(k, want.Children[i])
			}
		}
		exact := true
		want.Walk(func(path []string, n *Node) bool {
			exact = exact && !n.Estimated
			if rng.IntN(20) == 0 {
				got, err := tree.Find(path...)
				if err != nil || got == nil || row(got) != row(n) {
					t.Fatalf("%s: %v is not found: %v", c.by, path, err)
				}
			}
			return true
		})
		if got, err := tree.Exact(); err != nil || got != exact {
			t.Errorf("%s: exact is %v, not %v: %v", c.by, got, exact, err)
		}
		same(tree.Root, want)
		if n, err := tree.Find("nobody"); n != nil || err != nil {
			t.Error("what is not there is found")
		}
		for _, q := range []string{"1", "m3", "C2", "q", "before", "nothing"} {
			match := func(k string) bool { return strings.Contains(k, q) }
			for _, most := range []int{1, 7, 100, 1 << 20} {
				found, hits, shown, err := tree.Search(tree.Root, match, most)
				must(err)
				kept, n, m := searched(want, match, most)
				if a, b := rows(found), rows(kept); hits != n || shown != m || !slices.Equal(a, b) {
					t.Fatalf("%s: %d of %d groups for %s, not %d of %d, or others: %d rows, not %d", c.by, shown, hits,
						q, m, n, len(a), len(b))
				}
			}
		}
	}
}

// searched is what Tree.Search gives, found the simple way.
func searched(n *Node, match func(string) bool, most int) (found *Node, hits, shown int) {
	type hit struct {
		path  string
		bytes uint64
	}
	var all []hit
	var look func(n *Node, path string)
	look = func(n *Node, path string) {
		for i, c := range n.Children {
			if at := fmt.Sprint(path, i, " "); match(c.Key) {
				all = append(all, hit{at, c.Bytes})
			} else {
				look(c, at)
			}
		}
	}
	look(n, "")
	slices.SortStableFunc(all, func(a, b hit) int { return cmp.Compare(b.bytes, a.bytes) })
	above, kept := map[string]bool{}, map[string]bool{}
	for _, h := range all[:min(len(all), most)] {
		kept[h.path] = true
		for i, c := range h.path {
			if c == ' ' {
				above[h.path[:i+1]] = true
			}
		}
	}
	var keep func(n *Node, path string) []*Node
	keep = func(n *Node, path string) (out []*Node) {
		for i, c := range n.Children {
			at := fmt.Sprint(path, i, " ")
			if !above[at] {
				continue
			}
			x := *c
			if x.Children = nil; !kept[at] {
				x.Children = keep(c, at)
			}
			out = append(out, &x)
		}
		return out
	}
	return &Node{Key: n.Key, Objects: n.Objects, Bytes: n.Bytes, Children: keep(n, "")}, len(all), len(kept)
}

// TestLeaves: the leaves of a tree have what its groups without groups below them have, and add up to the root.
func TestLeaves(t *testing.T) {
	w, ts := crowd()
	for _, c := range []struct{ by, filter string }{{"type, site", ""}, {"site(64), type", ""},
		{"packages, ages, site(2)", "age >= 3"}, {"thread, site, type", `site.has("q.A.m1")`}, {"type", ""},
		{"type, packages", ""}} {
		by, err := classify.NewLibrary().By(c.by)
		if err != nil {
			t.Fatal(err)
		}
		var fs []classify.Filter
		if c.filter != "" {
			f, err := classify.NewFilter(c.filter)
			if err != nil {
				t.Fatal(err)
			}
			fs = append(fs, f)
		}
		tree, err := Begin(w, ts, by, fs)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]*Node{}
		all, err := tree.All(tree.Root)
		if err != nil {
			t.Fatal(err)
		}
		all.Walk(func(path []string, n *Node) bool {
			want[strings.Join(path, "\x00")] = n
			return true
		})
		got, sum := map[*Node]*Leaf{}, 0.0
		if err := tree.Leaves(func(l *Leaf) {
			var path []string
			for _, s := range l.Path {
				path = append(path, tree.Keys()[s.Key])
			}
			n := want[strings.Join(path, "\x00")]
			if n == nil {
				t.Fatalf("%s: no group %q", c.by, path)
			}
			if got[n] == nil {
				got[n] = &Leaf{}
			}
			x := got[n]
			x.Bytes, x.Objects, x.Estimated = x.Bytes+l.Bytes, x.Objects+l.Objects, x.Estimated || l.Estimated
			sum += l.Bytes
		}); err != nil {
			t.Fatal(err)
		}
		all.Walk(func(path []string, n *Node) bool {
			if len(n.Children) > 0 {
				return true
			}
			l := got[n]
			if l == nil || rounded(l.Bytes) != n.Bytes || rounded(l.Objects) != n.Objects ||
				l.Estimated != n.Estimated {
				t.Fatalf("%s: %q: %+v; its group says %s", c.by, path, l, row(n))
			}
			return true
		})
		if rounded(sum) != tree.Root.Bytes {
			t.Errorf("%s: leaves with %v bytes, want %d", c.by, sum, tree.Root.Bytes)
		}
	}
}
