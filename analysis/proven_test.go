package analysis

import (
	"slices"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/classify/grouping"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// few is a recording in which all samples end at one bytecode of a method, or at two, and whose probe has found these
// to be the candidates of two types.
func few(t *testing.T, seed, places uint64) []trace.Block {
	t.Helper()
	rec := analysistest.Recording(seed+1, trace.CollectorSerial+seed%3, trace.DepthSurvivors, 11)
	var d trace.Defs
	method, last, at := uint64(0), uint64(0), 0
	for i, b := range rec {
		switch b.Kind {
		case trace.KindEpoch:
			e, err := trace.DecodeEpoch(b)
			if err != nil {
				t.Fatal(err)
			}
			if last = e.Pause.GC; at == 0 {
				at = i + 1
			}
		case trace.KindDefs:
			x, err := trace.DecodeDefs(b)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range x.Methods {
				method = m.ID
			}
			for i := range x.Frames {
				x.Frames[i].Method, x.Frames[i].BCI = method, int64(3+x.Frames[i].ID%places)
			}
			for _, ty := range x.Types {
				for p := range places {
					if ty.Name == "shop/Cart" || ty.Name == "java/util/HashMap$Node" {
						d.Candidates = append(d.Candidates, trace.Candidate{Type: ty.ID, Method: method, BCI: 3 + p})
					}
				}
			}
			rec[i].Payload = trace.EncodeDefs(x).Payload
		}
	}
	for i := range d.Candidates {
		d.Candidates[i].Method = method
	}
	d.Scanned = []trace.Scanned{{GC: last - seed/2%2}} // what was born last is proven, or not
	return slices.Insert(rec, at, trace.EncodeDefs(d))
}

// TestProvenRows gives types of recordings candidates that their samples allow. By `histogram --sites` and by `group`
// what is proven has a row, with the same figures and bounds, and the rows of a class still add up.
func TestProvenRows(t *testing.T) {
	proven, listed := 0, 0
	for seed := range uint64(12) {
		rec := few(t, seed, 1+seed%2)
		open := func() *heap.Replay { return heap.NewReplay(&analysistest.Source{B: slices.Clone(rec)}) }
		var known *sites.CoverageFollower
		r, c, err := collection.OpenWatched("last", open, open, func(r *heap.Cursor) func(*heap.Collection) {
			known = &sites.CoverageFollower{}
			return func(c *heap.Collection) { known.Collection(r, c) }
		})
		if err != nil {
			t.Fatal(err)
		}
		by, err := classify.NewLibrary().By("type, site(64)")
		if err != nil {
			t.Fatal(err)
		}
		w, spaces := World(r, c)
		w.LostSamples = known.Lost
		Prove(w, r.Symbols, known)
		g, err := Group(r, c, w, spaces, by, nil)
		if err != nil {
			t.Fatal(err)
		}
		sum, stacks := map[string]bounds{}, map[string]int{}
		for _, s := range sites.Live(r, known) {
			if s.Samples > 0 {
				stacks[s.Class]++
			}
		}
		for _, s := range sites.Live(r, known) {
			n := sum[s.Class]
			n.objects, n.bytes = n.objects+s.Objects, n.bytes+s.Bytes
			sum[s.Class] = n
			if s.Objects < s.ObjectsLow || s.Objects > s.ObjectsHigh || s.Bytes < s.BytesLow || s.Bytes > s.BytesHigh {
				t.Errorf("seed %d: %+v", seed, s)
			}
			var x *grouping.Node
			switch {
			case s.Proven:
				proven++
				x = g.Tree.FindPath(s.Class+"|"+s.Site[0].String()+"|"+classify.CallersUnknown, "|")
			case s.Child == sites.SiteFew:
				listed++
				x = g.Tree.FindPath(s.Class+"|"+classify.SiteFew, "|")
			default:
				continue
			}
			want := bounds{s.Objects, s.ObjectsLow, s.ObjectsHigh, s.Bytes, s.BytesLow, s.BytesHigh}
			got := bounds{}
			if x != nil && x.Estimated {
				got = bounds{x.Objects, *x.ObjLow, *x.ObjHigh, x.Bytes, *x.BytesLow, *x.BytesHigh}
			} else if x != nil {
				got = bounds{x.Objects, x.Objects, x.Objects, x.Bytes, x.Bytes, x.Bytes}
			}
			if alone := stacks[s.Class] <= 1; alone && !got.like(want) || x == nil || s.Objects > x.Objects+4 {
				t.Errorf("seed %d, %s: grouped %+v, the histogram %+v", seed, s.Class, got, want)
			}
		}
		for _, x := range g.Tree.Children {
			if n := sum[x.Key]; n.objects != x.Objects || n.bytes != x.Bytes {
				t.Errorf("seed %d, %s: rows add up to %+v, there are %d objects and %d bytes", seed, x.Key, n,
					x.Objects, x.Bytes)
			}
		}
	}
	if proven < 3 || listed < 3 {
		t.Errorf("%d rows are proven, %d of few candidates", proven, listed)
	}
	t.Logf("%d rows are proven, %d of few candidates", proven, listed)

}
