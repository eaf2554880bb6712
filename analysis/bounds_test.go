package analysis

import (
	"slices"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/classify/grouping"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// bounds are the figures of a row and their 95 % intervals.
type bounds struct{ objects, objectsLow, objectsHigh, bytes, bytesLow, bytesHigh uint64 }

// like says whether two rows are the same within rounding: the rows of a class add up, those of a group are rounded
// each.
func (b bounds) like(o bounds) bool {
	near := func(x, y uint64) bool { return max(x, y)-min(x, y) <= 4 }
	return near(b.objects, o.objects) && near(b.bytes, o.bytes) && near(b.objectsLow, o.objectsLow) &&
		near(b.objectsHigh, o.objectsHigh) && near(b.bytesLow, o.bytesLow) && near(b.bytesHigh, o.bytesHigh)
}

// TestSameBounds prints the rows of one recording by `report`, `histogram --sites` and `group --by type,site`: of a
// class and a whole stack the three have the same figures and the same bounds.
func TestSameBounds(t *testing.T) {
	compared, estimated, capped, unknown := 0, 0, 0, 0
	for seed := range uint64(6) {
		rec := analysistest.Recording(seed+1, trace.CollectorSerial+seed%3, trace.DepthSurvivors, 11)
		open := func() *heap.Replay { return heap.NewReplay(&analysistest.Source{B: slices.Clone(rec)}) }
		var known *sites.CoverageFollower
		r, c, err := collection.OpenWatched("last", open, open, func(r *heap.Cursor) func(*heap.Collection) {
			f := &sites.CoverageFollower{}
			known = f
			return func(c *heap.Collection) { f.Collection(r, c) }
		})
		if err != nil {
			t.Fatal(err)
		}
		want, rows := map[string]bounds{}, map[string]int{} // by class and frames
		rest, stacks := map[string]bounds{}, map[string]int{}
		for _, s := range sites.Live(r, known) {
			switch s.Child {
			case sites.SiteUnknown:
				rest[s.Class] = bounds{s.Objects, s.ObjectsLow, s.ObjectsHigh, s.Bytes, s.BytesLow, s.BytesHigh}
				rows[s.Class]++
			case "":
				stacks[s.Class]++
			}
			if s.Child == "" {
				k := s.Class + " " + sites.JoinStack(s.Site)
				want[k] = bounds{s.Objects, s.ObjectsLow, s.ObjectsHigh, s.Bytes, s.BytesLow, s.BytesHigh}
				rows[k]++
			}
		}
		rep, err := MakeReport(open(), leak.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range rep.Sites {
			b := bounds{s.Objects, s.ObjectsLow, s.ObjectsHigh, s.Bytes, s.BytesLow, s.BytesHigh}
			if k := s.Class + " " + sites.JoinStack(s.Site); s.Child == "" && rows[k] == 1 &&
				rep.Collections[len(rep.Collections)-1].GC == c.GC &&
				b != want[k] {
				t.Errorf("seed %d, %s: the report says %+v, the histogram %+v", seed, k, b, want[k])
			}
		}
		by, err := classify.NewLibrary().By("type, site(64)")
		if err != nil {
			t.Fatal(err)
		}
		w, spaces := World(r, c)
		w.LostSamples = known.Lost
		g, err := Group(r, c, w, spaces, by, nil)
		if err != nil {
			t.Fatal(err)
		}
		g.Tree.Walk(func(path []string, n *grouping.Node) bool {
			if len(path) == 2 && n.Key == classify.SiteUnknown && rows[path[0]] == 1 && stacks[path[0]] <= 1 {
				got := bounds{n.Objects, n.Objects, n.Objects, n.Bytes, n.Bytes, n.Bytes}
				if n.Estimated {
					got = bounds{n.Objects, *n.ObjLow, *n.ObjHigh, n.Bytes, *n.BytesLow, *n.BytesHigh}
				}
				unknown++
				if b := rest[path[0]]; !got.like(b) {
					t.Errorf("seed %d, %s of unknown site: grouped %+v, the histogram %+v", seed, path[0], got, b)
				}
			}
			if len(path) < 2 || len(n.Children) > 0 || n.Samples == 0 {
				return true
			}
			k := path[0] + " " + joinKeys(path[1:])
			b := want[k]
			if rows[k] != 1 {
				return true // two stacks, or loaders, look alike
			}
			got := bounds{n.Objects, n.Objects, n.Objects, n.Bytes, n.Bytes, n.Bytes}
			if n.Estimated {
				got = bounds{n.Objects, *n.ObjLow, *n.ObjHigh, n.Bytes, *n.BytesLow, *n.BytesHigh}
				estimated++
				if b.objectsHigh == g.Tree.FindPath(path[0], "/").Objects {
					capped++
				}
			}
			compared++
			if !got.like(b) {
				t.Errorf("seed %d, %s (%d samples, %d of %d objects): grouped %+v, the histogram %+v", seed, k,
					n.Samples, n.Objects, g.Tree.FindPath(path[0], "/").Objects, got, b)
			}
			return true
		})
	}
	if unknown == 0 {
		t.Error("no row of an unknown site was compared")
	}
	t.Logf("%d rows compared, %d estimates, %d of them up to all that there is", compared, estimated, capped)
	if compared < 50 || estimated < 30 || capped == 0 || capped == estimated {
		t.Errorf("%d rows compared, %d estimates, %d of them up to all that there is", compared, estimated, capped)
	}
}

func joinKeys(keys []string) string {
	s := ""
	for i, k := range keys {
		if i > 0 {
			s += "; "
		}
		s += k
	}
	return s
}
