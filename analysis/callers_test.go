package analysis

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/classify/grouping"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// sited replays a recording to its end, and then lets the bytecode tell the innermost frame, that of stack, of all
// objects that have no sample.
func sited(t *testing.T) (r *heap.Replay, c *heap.Collection, known *sites.CoverageFollower, n, bytes uint64) {
	t.Helper()
	rec := analysistest.Recording(5, trace.CollectorParallel, trace.DepthFull, 9)
	open := func() *heap.Replay {
		r = heap.NewReplay(&analysistest.Source{B: slices.Clone(rec)})
		return r
	}
	var err error
	_, c, err = collection.OpenWatched("last", open, open, func(r *heap.Cursor) func(*heap.Collection) {
		known = &sites.CoverageFollower{}
		return func(c *heap.Collection) { known.Collection(r, c) }
	})
	if err != nil {
		t.Fatal(err)
	}
	// One helper with two callers: the first has three of four samples.
	methods := slices.Sorted(maps.Keys(r.Methods))
	const frame, first = 1 << 20, 1<<20 + 1
	r.Frames[frame] = trace.Frame{ID: frame, Method: methods[0], BCI: 9}
	for i := range uint64(2) {
		r.Frames[first+2*i] = trace.Frame{ID: first + 2*i, Parent: first + 2*i + 1, Method: methods[0], BCI: 9}
		r.Frames[first+2*i+1] = trace.Frame{ID: first + 2*i + 1, Method: methods[1+i], BCI: 1}
	}
	for i := range uint64(400) {
		at := uint64(first)
		if i%4 == 0 {
			at += 2
		}
		known.Callers().Add(r.Symbols, at)
	}
	var put []heap.Object
	r.State.Each(func(o heap.Object) bool {
		if o.Sample == 0 {
			put = append(put, o)
		}
		return true
	})
	for _, o := range put {
		id := r.AddSited(uint64(o.Type), 8*o.Words, frame, uint64(o.Birth), 0)
		r.State.SetSample(o.Addr, id, uint64(o.Birth))
		n, bytes = n+1, bytes+8*o.Words
	}
	known.Callers().Follow(&r.Cursor) // there are such objects now
	return r, c, known, n, bytes
}

// drawnCallers groups the state of sited with drawn callers. A tree that is made when asked must be the same.
type drawnCallers struct {
	v     *heap.View
	c     *heap.Collection
	known *sites.CoverageFollower
}

func (d drawnCallers) group(
	t *testing.T,
	by string,
	where ...string,
) (*Grouping, *grouping.Tree, []classify.Classifier) {
	t.Helper()
	v, c := d.v, d.c
	w, spaces := World(v, c)
	DrawCallers(w, v, d.known.Callers().Frozen())
	cs, err := classify.NewLibrary().By(by)
	if err != nil {
		t.Fatal(err)
	}
	var fs []classify.Filter
	for _, s := range where {
		f, err := classify.NewFilter(s)
		if err != nil {
			t.Fatal(err)
		}
		fs = append(fs, f)
	}
	g, err := Group(v, c, w, spaces, cs, fs)
	if err != nil {
		t.Fatal(err)
	}
	_, tree, err := OpenTuples(v.Symbols, c, w, g.Tuples, cs, fs)
	if err != nil {
		t.Fatal(err)
	}
	n, err := tree.All(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	x, _ := json.Marshal(g.Tree)
	if y, _ := json.Marshal(n); string(x) != string(y) {
		t.Errorf("%s: the tree that is made when asked is another", by)
	}
	if exact, err := tree.Exact(); err != nil || exact != g.Exact {
		t.Errorf("%s: exact: %v, %v", by, exact, err)
	}
	return g, tree, cs
}

// TestCallersDrawn: objects whose innermost frame alone is exact get callers by samples. Groups above the callers stay
// exact, those of callers say how many were drawn, with which share, and their bounds allow any other callers. It is
// the same in a tree that is made when asked, in a list of objects, and by histogram --sites.
func TestCallersDrawn(t *testing.T) {
	r, c, known, all, bytes := sited(t)
	v := r.View()
	d := drawnCallers{v, c, known}
	if all < 200 {
		t.Fatalf("only %d objects", all)
	}
	g, tree, by := d.group(t, "site")
	site := sites.Stack(v.Symbols, 1<<20, 1)[0].String()
	n := g.Tree.FindPath(site, "/")
	if n == nil || n.Drawn != 0 || n.Objects < all || len(n.Children) != 2 {
		t.Fatalf("the innermost frame: %+v", n)
	}
	drawn, share := uint64(0), 0.0
	for _, x := range n.Children {
		drawn, share = drawn+x.Drawn, share+x.Share
		if x.Drawn == 0 || !x.Estimated || *x.ObjLow > x.Objects-x.Drawn || *x.ObjHigh < all ||
			*x.ObjHigh > n.Objects || *x.BytesHigh < bytes {
			t.Errorf("%+v, of %d objects", x, all)
		}
		if y, err := tree.Find(site, x.Key); err != nil || y.Drawn != x.Drawn || *y.ObjHigh != *x.ObjHigh {
			t.Errorf("%+v of a tree that is made when asked: %+v, %v", x, y, err)
		}
	}
	if drawn != all || math.Abs(share-1) > 1e-9 || math.Abs(n.Children[0].Share-0.75) > 0.1 || g.Exact || !g.Drawn() {
		t.Errorf("%d of %d drawn, share %g and %g, exact: %v", drawn, all, share, n.Children[0].Share, g.Exact)
	}
	// A list has the objects of the group, with the same callers.
	listed := uint64(0)
	g.List(v, n.Children[0], nil, by, nil, func(o ListedObject) bool {
		if o.Drawn {
			listed++
		}
		if len(o.Site) != 2 || o.Site[1].String() != n.Children[0].Key {
			t.Errorf("listed: %+v", o)
		}
		return true
	})
	if listed != n.Children[0].Drawn {
		t.Errorf("%d are listed of %d", listed, n.Children[0].Drawn)
	}
	// The same as the rows of histogram --sites.
	rows, same, other := uint64(0), 0, 0
	classes, _, _ := d.group(t, "type, site")
	for _, x := range sites.Live(v, known) {
		if x.Drawn == 0 {
			continue
		}
		if x.Site[1].String() == n.Children[0].Key {
			rows += x.Drawn
		}
		y := classes.Tree.FindPath(x.Class+"|"+site+"|"+x.Site[1].String(), "|")
		if y != nil && y.Drawn == x.Drawn && y.Objects == x.Objects && *y.ObjLow == x.ObjectsLow &&
			*y.ObjHigh == x.ObjectsHigh && *y.BytesLow == x.BytesLow && *y.BytesHigh == x.BytesHigh {
			same++
		} else {
			other++
			t.Logf("%s: %+v, grouped %+v", x.Class, x, y)
		}
	}
	if same < 3 || other > 0 {
		t.Errorf("%d rows are as in the histogram, %d are not", same, other)
	}
	if rows != n.Children[0].Drawn {
		t.Errorf("histogram has drawn %d, group %d", rows, n.Children[0].Drawn)
	}
}

// TestCallersMarked: callers that were drawn are said of groups that depend on them, and of no others.
func TestCallersMarked(t *testing.T) {
	r, c, known, _, _ := sited(t)
	d := drawnCallers{r.View(), c, known}
	first := sites.Stack(r.Symbols, 1<<20+1, 2)[1].String()
	first, _, _ = strings.Cut(first, "(")
	for _, x := range []struct {
		by, where string
		drawn     bool
	}{{"site(1), type", "", false}, {"type, thread", "", false}, {"confidence", "", false}, {"type, site", "", true},
		{"site(2), type", "", true}, {`site.has("x")`, "", true}, {"type", `site.has("` + first + `")`, true},
		{"type", "", false}} {
		var where []string
		if x.where != "" {
			where = []string{x.where}
		}
		if g, _, _ := d.group(t, x.by, where...); g.Drawn() != x.drawn || x.drawn && g.Exact {
			t.Errorf("--by '%s' --where '%s' says that callers were drawn: %v", x.by, x.where, g.Drawn())
		}
	}
}
