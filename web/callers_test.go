package web

import (
	"context"
	"maps"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/analysistest/sitedtest"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/classify/grouping"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// DrawnOf is drawnOf for tests in a browser.
var DrawnOf = drawnOf

// drawnOf serves a recording whose objects have one innermost frame.
func drawnOf(t *testing.T) (*Server, []trace.Block) {
	m := tracetest.New(tracetest.All(4, trace.CollectorParallel, trace.DepthSurvivors))
	var bs []trace.Block
	for i := range 30 {
		bs = append(bs, m.Step(i%7 == 0).Blocks...)
	}
	bs = sitedtest.Blocks(t, append(bs, m.End()))
	s := New(Config{Title: "drawn", Open: func(func(done, total int64)) (*Input, error) {
		return &Input{Source: &blocks{slices.Clone(bs)}, Close: func() {}}, nil
	}, OpenFrom: func(uint64) (*Input, error) {
		return &Input{Source: &blocks{slices.Clone(bs)}, Close: func() {}}, nil
	}})
	t.Cleanup(s.Close)
	return s, bs
}

// TestCallersDrawn: the viewer draws the callers of objects whose innermost frame alone is exact, as `heapcam group`
// does: in its table, and in its flame graphs, in which the same objects are marked.
func TestCallersDrawn(t *testing.T) {
	s, bs := drawnOf(t)
	ctx := context.Background()
	q := question{by: "site, type"}
	got, err := s.grouped(ctx, "last", q)
	if err != nil {
		t.Fatal(err)
	}
	all, err := got.tree.All(got.tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	by, _, err := q.make(s)
	if err != nil {
		t.Fatal(err)
	}
	r, callers := heap.NewReplay(&blocks{slices.Clone(bs)}), &sites.Callers{}
	var c *heap.Collection
	if err := collection.Each(r, func(x *heap.Collection) bool {
		callers.Follow(&r.Cursor)
		c = x
		return true
	}); err != nil || len(r.Faults) > 0 {
		t.Fatal(err, r.Faults)
	}
	w, spaces := analysis.World(r.View(), c)
	analysis.DrawCallers(w, r.View(), callers.Frozen())
	want, err := analysis.Group(r.View(), c, w, spaces, by, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(rows(all), rows(want.Tree)) {
		t.Error("the viewer has other groups than heapcam group")
	}
	helper := sites.Stack(r.Symbols, sitedtest.DrawnStack, 2)
	n := want.Tree.FindPath(helper[0].String(), "/")
	if n == nil || n.Drawn > 0 || len(n.Children) < 2 {
		t.Fatalf("%+v", n)
	}
	drawn := map[string]*grouping.Node{}
	for _, x := range n.Children {
		drawn[x.Key] = x
	}
	x := drawn[helper[1].String()]
	if x == nil || x.Drawn < 20 || x.Share < 0.6 || x.Share > 0.9 {
		t.Fatalf("callers: %+v", x)
	}
	flame := func(query string) *flameReply {
		x, err := s.flame(httptest.NewRequest("GET", "/api/flame?by=site,type&"+query, nil))
		if err != nil {
			t.Fatal(err)
		}
		f := x.(flameReply)
		return &f
	}
	child := func(n *flameNode, key string) *flameNode {
		i := slices.IndexFunc(n.Children, func(c *flameNode) bool { return c.Key == key })
		if i < 0 {
			t.Fatalf("%s is not below %s", key, n.Key)
		}
		return n.Children[i]
	}
	for name, x := range map[string]*flameNode{
		"leaf first": child(child(flame("order=leaf").Tree, helper[0].String()), helper[1].String()),
		"root first": child(flame("order=root").Tree, helper[1].String()),
		"callers":    child(flame("frame="+url.QueryEscape(helper[0].String())).Callers, helper[1].String()),
	} {
		if x.Drawn != drawn[x.Key].Drawn || !x.Estimated {
			t.Errorf("%s: %d callers of %s are drawn, estimated %v, in the table %d", name, x.Drawn, x.Key, x.Estimated,
				drawn[x.Key].Drawn)
		}
	}
	for name, x := range map[string]*flameNode{
		"leaf first": child(flame("order=leaf").Tree, helper[0].String()),
		"heap":       flame("order=root").Tree,
		"callees":    flame("frame=" + url.QueryEscape(helper[0].String())).Tree,
	} {
		if x.Drawn != 0 {
			t.Errorf("%s: %d callers of %s are drawn, and its objects depend on none", name, x.Drawn, x.Key)
		}
	}
}
