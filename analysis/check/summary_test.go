package check

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/heap/samples"
	"github.com/heapcam/heapcam/trace"
)

// summarized puts a summary behind each sync point of a rec, made of what replaying gives.
func summarized(t testing.TB, rec []trace.Block) (out []trace.Block) {
	r := heap.NewReplay(&analysistest.Source{B: rec})
	var all []*trace.Summary
	s := &trace.Summary{}
	if err := collection.Each(r, func(c *heap.Collection) bool {
		s.Collections = append(s.Collections, collectionRow(c))
		if !c.Synced {
			return true
		}
		s.First, s.Last, s.At = s.Collections[0].GC, c.GC, c.GC
		for typ, n := range r.State.PerType() {
			if n.Objects > 0 {
				s.Types = append(s.Types,
					trace.TypeSum{Type: uint64(typ), Objects: n.Objects, Bytes: n.Bytes, Born: n.Objects})
			}
		}
		type site struct{ samples, objects, bytes float64 }
		by := map[[2]uint64]site{}
		for _, l := range r.Live.All() {
			k := [2]uint64{l.Type, l.Frame}
			n := by[k]
			by[k] = site{n.samples + 1, n.objects + l.Weight, n.bytes + l.Weight*float64(l.Size)}
		}
		for k, n := range by {
			s.Sites = append(s.Sites,
				trace.SiteSum{Type: k[0], Frame: k[1], Samples: uint64(n.samples), Objects: uint64(n.objects),
					Bytes: uint64(n.bytes)})
		}
		all = append(all, s)
		s = &trace.Summary{}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	for _, b := range rec {
		out = append(out, b)
		if b.Kind == trace.KindSync && len(all) > 0 {
			if y, err := trace.DecodeSync(b); err == nil && y.GC == all[0].At {
				out = append(out, trace.EncodeSummary(all[0]))
				all = all[1:]
			}
		}
	}
	return out
}

func check(t testing.TB, bs []trace.Block) *SummaryCheck {
	return checkWith(t, bs, func(*heap.Replay, *heap.Collection) {})
}

// checkWith calls f before the check of each collection.
func checkWith(t testing.TB, bs []trace.Block, f func(*heap.Replay, *heap.Collection)) *SummaryCheck {
	r := heap.NewReplay(&analysistest.Source{B: bs})
	k := Summaries(r)
	if err := collection.Each(r, func(c *heap.Collection) bool { f(r, c); k.Collection(c); return true }); err != nil &&
		err != io.EOF {
		t.Fatal(err)
	}
	return k
}

// TestSummariesSited: what is known of exact sites, which summaries leave out, is no difference.
func TestSummariesSited(t *testing.T) {
	bs := summarized(t, analysistest.Recording(1, trace.CollectorSerial, trace.DepthSurvivors, 40))
	added := 0
	k := checkWith(t, bs, func(r *heap.Replay, c *heap.Collection) {
		for id, l := range r.Live.All() {
			if !samples.Sited(id) {
				r.AddSited(l.Type, l.Size, l.Frame, c.GC, c.Start)
				added++
				break
			}
		}
	})
	if added == 0 || k.Sites == 0 || k.Different > 0 {
		t.Errorf("%d objects have an exact site, of %d sites %d differ: %s", added, k.Sites, k.Different, k.First)
	}
}

// TestSummaries: what a summary says of collections and types is held against the replay, and a lie in any of its
// figures is found. Read alone, summaries give the histories that the replay gives at these collections.
func TestSummaries(t *testing.T) {
	rec := analysistest.Recording(1, trace.CollectorSerial, trace.DepthSurvivors, 40)
	bs := summarized(t, rec)
	change := func(f func(s *trace.Summary)) []trace.Block {
		var out []trace.Block
		for _, b := range bs {
			if b.Kind == trace.KindSummary {
				s, err := trace.DecodeSummary(b)
				if err != nil {
					t.Fatal(err)
				}
				f(s)
				b = trace.EncodeSummary(s)
			}
			out = append(out, b)
		}
		return out
	}
	if k := check(t, bs); k.Different > 0 || k.Summaries < 3 || k.Collections < 20 || k.Types < 20 || k.Sites == 0 {
		t.Fatalf("%+v", k)
	}
	for what, f := range map[string]func(s *trace.Summary){
		"objects": func(s *trace.Summary) { s.Collections[len(s.Collections)-1].Objects++ },
		"pause":   func(s *trace.Summary) { s.Collections[0].Dur++ },
		"cause":   func(s *trace.Summary) { s.Collections[0].Cause += "!" },
		"space":   func(s *trace.Summary) { s.Collections[0].Old += 8 },
		"type":    func(s *trace.Summary) { s.Types[0].Bytes += 8 },
		"site":    func(s *trace.Summary) { s.Sites[0].Samples++ },
	} {
		if k := check(t, change(f)); k.Different == 0 || !strings.Contains(k.First, "summary") {
			t.Errorf("%s: a lie was not found: %+v", what, k)
		}
	}

	h, err := history.AtSyncPoints(
		heap.NewReplay(&analysistest.Source{B: slices.DeleteFunc(slices.Clone(bs), func(b trace.Block) bool {
			return b.Kind != trace.KindMeta && b.Kind != trace.KindDefs && b.Kind != trace.KindSummary
		})}),
	)
	if err != nil {
		t.Fatal(err)
	}
	all, err := history.Make(heap.NewReplay(&analysistest.Source{B: rec}), 2)
	if err != nil {
		t.Fatal(err)
	}
	at := func(h *history.HeapHistory, x history.History, gc uint64) (n heap.Count) {
		for k, i := range x.At {
			if h.Collections[i] <= gc {
				n = heap.Count{Objects: x.Objects[k], Bytes: x.Bytes[k]}
			}
		}
		return n
	}
	if len(h.Collections) < 3 || len(h.Classes) == 0 {
		t.Fatalf("%d collections, %d classes", len(h.Collections), len(h.Classes))
	}
	for _, gc := range h.Collections {
		want := map[string]heap.Count{}
		for _, x := range all.Classes {
			want[sites.WithLoader(x.Class, x.Loader)] = at(all, x, gc)
		}
		for _, x := range h.Classes {
			if n := at(h, x, gc); n != want[sites.WithLoader(x.Class, x.Loader)] {
				t.Errorf("collection %d, %s: %+v, want %+v", gc, x.Class, n, want[sites.WithLoader(x.Class, x.Loader)])
			}
		}
	}
	var b strings.Builder
	h.WriteText(&b, 5)
	if !strings.Contains(b.String(), "sync points") {
		t.Error(b.String())
	}
}
