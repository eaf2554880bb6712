package analysis

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/analysistest/sitedtest"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/classify/grouping"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/heap/samples"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// drawnRecording opens a recording with exact sites, without full collections.
func drawnRecording(t *testing.T) func() *heap.Replay {
	m := tracetest.New(tracetest.All(4, trace.CollectorParallel, trace.DepthSurvivors))
	var bs []trace.Block
	for i := range 20 {
		bs = append(bs, m.Step(i%7 == 0).Blocks...)
	}
	bs = sitedtest.Blocks(t, append(bs, m.End()))
	return func() *heap.Replay { return heap.NewReplay(&analysistest.Source{B: slices.Clone(bs)}) }
}

// classifiers gives new ones each time.
func classifiers(t *testing.T, by string, where ...string) func() ([]classify.Classifier, []classify.Filter) {
	return func() (cs []classify.Classifier, fs []classify.Filter) {
		cs, err := classify.NewLibrary().By(by)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range where {
			f, err := classify.NewFilter(w)
			if err != nil {
				t.Fatal(err)
			}
			fs = append(fs, f)
		}
		return cs, fs
	}
}

// states gives the states after two collections, each of a replay of its own, and from what the later one's callers
// are drawn.
func states(t *testing.T, open func() *heap.Replay, gcs ...uint64) (
	vs []*heap.View,
	cs []*heap.Collection,
	from *sites.Callers,
) {
	for _, gc := range gcs {
		r, callers := open(), sites.Callers{}
		c, err := collection.AtWatched(r, gc, func(*heap.Collection) { callers.Follow(&r.Cursor) })
		if err != nil {
			t.Fatal(err)
		}
		vs, cs, from = append(vs, r.View()), append(cs, c), callers.Frozen()
	}
	return vs, cs, from
}

// TestDiffDraws: a diff by site has the callers of objects whose innermost frame alone is exact, with their share. It
// leaves the figures of the innermost frame as they are, and its bounds allow any other callers.
func TestDiffDraws(t *testing.T) {
	open := drawnRecording(t)
	const from, to = 17, 20
	diff := func(by string) *DiffReport {
		cs, _ := classifiers(t, by)()
		d, err := Diff(open(), from, to, cs, nil)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d, top := diff("site"), diff("site(1)")
	if top.Tree.Drawn > 0 || d.Exact || top.Tree.Bytes != d.Tree.Bytes {
		t.Errorf("the root: %+v and %+v", top.Tree, d.Tree)
	}
	var n *Change
	for _, x := range d.Tree.Children {
		for _, y := range top.Tree.Children {
			if x.Key == y.Key && (x.Objects != y.Objects || x.Bytes != y.Bytes || x.Drawn+y.Drawn > 0) {
				t.Errorf("%s has %+v, alone %+v", x.Key, x.Objects, y.Objects)
			}
		}
		if len(x.Children) == 2 {
			n = x
		}
	}
	if n == nil {
		t.Fatalf("no site has two callers: %+v", d.Tree)
	}
	vs, cs, callers := states(t, open, from, to)
	var exact [3]uint64 // objects whose innermost frame alone is known, that died, stayed and were born
	for id := range vs[0].Live.All() {
		if samples.Sited(id) && vs[1].Live.Get(id) == nil {
			exact[0]++
		}
	}
	for id := range vs[1].Live.All() {
		switch {
		case !samples.Sited(id):
		case vs[0].Live.Get(id) != nil:
			exact[1]++
		default:
			exact[2]++
		}
	}
	share, sum := 0.0, [3]uint64{}
	for _, x := range n.Children {
		share += x.Share
		for i, r := range []Range{x.Objects.Died, x.Objects.Permanent, x.Objects.Born} {
			sum[i] += r.Value
			if r.Low > r.Value || r.High < max(r.Value, exact[i]) {
				t.Errorf("%s: %+v, %d are exact", x.Key, r, exact[i])
			}
		}
		if x.Drawn == 0 || !x.Estimated || x.Objects.Before.High > n.Objects.Before.High ||
			x.Objects.After.High > n.Objects.After.High || x.Objects.After.High < exact[1]+exact[2] ||
			x.Objects.After.Low+x.Drawn > x.Objects.After.Value+exact[0] {
			t.Errorf("%+v of %+v", x, n)
		}
	}
	near := func(a, b uint64) bool { return a > 20 && max(a, b)-min(a, b) <= 2 } // as children are rounded
	if exact[0]+exact[1] < 20 || exact[2] < 20 {
		t.Errorf("%d exact objects died, stayed and were born", exact)
	}
	if share < 0.999 || share > 1.001 || !near(sum[0], n.Objects.Died.Value) ||
		!near(sum[1], n.Objects.Permanent.Value) || !near(sum[2], n.Objects.Born.Value) {
		t.Errorf("shares are %g, figures %v of %+v", share, sum, n.Objects)
	}
	by, _ := classifiers(t, "site")()
	got, err := DiffStates(vs[0], cs[0], vs[1], cs[1], callers, by, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(got)
	if b, _ := json.Marshal(d); string(a) != string(b) {
		t.Errorf("of two states it is\n%s\nand not\n%s", a, b)
	}
}

// TestDiffParts: callers of what died are those of samples that died, and so on. What gets its site between the states
// was not born there.
func TestDiffParts(t *testing.T) {
	const alone, gone, kept, made = 1, 2, 4, 6
	at := func(id, parent, method uint64) trace.Frame {
		return trace.Frame{ID: id, Parent: parent, Method: method}
	}
	s := heap.NewReplay(&analysistest.Source{}).Symbols
	for _, f := range []trace.Frame{at(alone, 0, 1), at(gone, 3, 1), at(3, 0, 2), at(kept, 5, 1), at(5, 0, 3),
		at(made, 7, 1), at(7, 0, 4)} {
		s.Frames[f.ID] = f
	}
	const first = trace.MaxSampleID + 1
	folded := func(frame uint64, birth uint32, from, to uint64) heap.Folded {
		f := heap.Folded{Type: 1, Words: 2, Birth: birth, Space: -1, Objects: to - from, Bytes: 16 * (to - from),
			Sampled: frame > 0, Frame: frame}
		for id := from; id < to && f.Sampled; id++ {
			f.Samples = append(f.Samples, &heap.Sample{Sample: trace.Sample{ID: id, Type: 1, Size: 16, Frame: frame},
				Birth: uint64(birth), Weight: 1})
		}
		return f
	}
	// 30 objects are exact at first, of which 20 die; 7 get their site later; 40 are born.
	was := []heap.Folded{folded(gone, 1, 1, 5), folded(kept, 1, 5, 9), folded(alone, 2, first, first+30),
		folded(0, 3, 0, 7)}
	now := []heap.Folded{folded(kept, 1, 5, 9), folded(made, 9, 9, 13), folded(alone, 2, first, first+10),
		folded(alone, 3, first+50, first+57), folded(alone, 9, first+100, first+140)}
	r := &heap.View{Symbols: s}
	live := &heap.Live{}
	var callers sites.Callers
	for _, f := range now {
		for _, x := range f.Samples {
			live.Put(x.ID, x)
		}
	}
	c := heap.NewReplay(&analysistest.Source{})
	c.Symbols = s
	c.AddSited(1, 16, alone, 1, 0)
	callers.Follow(&c.Cursor)
	r.Live = live
	ts, strata := match(r, was, now, 5, callers.Frozen())
	if len(strata) > 0 {
		t.Errorf("identity was lost: %+v", strata)
	}
	got := map[[2]uint64]uint64{}
	for _, x := range ts {
		if x.Drawn {
			got[[2]uint64{uint64(x.Part), x.Frame}] += x.Objects
		}
	}
	want := map[[2]uint64]uint64{{partDied, gone}: 20, {partPermanent, kept}: 17, {partBorn, made}: 40}
	for k, n := range want {
		if got[k] != n {
			t.Errorf("drawn: %v, want %v", got, want)
		}
	}
	if len(got) != len(want) {
		t.Errorf("drawn: %v, want %v", got, want)
	}
}

// TestTrendDraws: each point of a trend is what a grouping says after that collection, with its drawn callers. It is
// the same of states that were kept.
func TestTrendDraws(t *testing.T) {
	open := drawnRecording(t)
	vs, _, _ := states(t, open, 20)
	caller, _, _ := strings.Cut(sites.Stack(vs[0].Symbols, sitedtest.DrawnStack, 2)[1].String(), "(")
	for _, x := range []struct{ by, where string }{{"site", "true"}, {"type, site(2)", "true"},
		{"type", `site.has("` + caller + `")`}} {
		again := classifiers(t, x.by, x.where)
		trend, err := Trend(open(), again, 0)
		if err != nil {
			t.Fatal(err)
		}
		last := len(trend.Collections) - 1
		vs, cs, callers := states(t, open, trend.Collections[last].GC)
		w, spaces := World(vs[0], cs[0])
		DrawCallers(w, vs[0], callers)
		by, filters := again()
		g, err := Group(vs[0], cs[0], w, spaces, by, filters)
		if err != nil {
			t.Fatal(err)
		}
		drawn := 0
		g.Tree.Walk(func(path []string, n *grouping.Node) bool {
			i := slices.IndexFunc(trend.Rows, func(r TrendRow) bool { return slices.Equal(r.Path, path) })
			if len(path) == 0 || i < 0 {
				return len(path) == 0
			}
			r := trend.Rows[i]
			if r.Bytes[last] != n.Bytes || r.Objects[last] != n.Objects || (n.Drawn > 0) != (r.Drawn != nil) {
				t.Errorf("%v has %d bytes, %d drawn, the grouping %+v", path, r.Bytes[last], r.Drawn, n)
			}
			if n.Drawn > 0 {
				drawn++
				if r.Drawn[last] != n.Drawn || r.Share != n.Share || *r.Low != *n.BytesLow || *r.High != *n.BytesHigh ||
					len(r.Drawn) != len(r.Bytes) {
					t.Errorf("%v: %+v, the grouping %+v", path, r, n)
				}
			}
			return true
		})
		if drawn == 0 {
			t.Errorf("--by '%s' --where '%s': no callers were drawn", x.by, x.where)
		}
		var kept []heap.AnySnapshot
		r, follow, lives := open(), sites.Callers{}, &heap.Lives{}
		if err := collection.Each(r, func(c *heap.Collection) bool {
			lives.Follow(r.Samples, c.GC)
			if follow.Follow(&r.Cursor); c.Known {
				kept = append(kept, r.Snapshot(c, nil))
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		names := r.Names()
		each := func(f func(*heap.View, *heap.Collection) bool) error {
			for _, k := range kept {
				f(k.View(names, lives), k.At())
			}
			return nil
		}
		got, err := TrendStates(&heap.Sampling{}, follow.Frozen(), each, again, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got.Rows {
			i := slices.IndexFunc(trend.Rows, func(x TrendRow) bool { return slices.Equal(r.Path, x.Path) })
			if i < 0 || !reflect.DeepEqual(trend.Rows[i], r) {
				t.Errorf("of kept states %v is %+v", r.Path, r)
			}
		}
	}
}
