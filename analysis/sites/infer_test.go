package sites

import (
	"maps"
	"math"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestChildrenAddUp splits random heaps by site, recorded from the start and later: the children of each class add up
// to what it has, objects and bytes, each within its interval; nothing is before a tape that began with its JVM.
func TestChildrenAddUp(t *testing.T) {
	inferred, before := uint64(0), uint64(0)
	for seed := range uint64(6) {
		for _, col := range []uint64{trace.CollectorSerial, trace.CollectorG1} {
			m := tracetest.New(tracetest.All(seed, col, trace.DepthSurvivors))
			var bs []trace.Block
			for i := range 30 {
				bs = append(bs, m.Step(i%8 == 0).Blocks...)
			}
			if seed%2 == 1 { // without its beginning
				for i, b := range bs {
					if i > len(bs)/3 && b.Kind == trace.KindSync {
						var defs []trace.Block
						for _, d := range bs[:i] {
							if d.Kind == trace.KindMeta || d.Kind == trace.KindDefs {
								defs = append(defs, d)
							}
						}
						bs = append(defs, bs[i:]...)
						break
					}
				}
			}
			r := heap.NewReplay(&analysistest.Source{B: bs})
			var last *heap.Collection
			if err := collection.Each(r, func(c *heap.Collection) bool { last = c; return true }); err != nil ||
				last == nil ||
				!r.Known {
				continue
			}
			if seed%2 == 1 {
				r.JVM.Flags &^= trace.JVMAtStart
			}
			type sum struct{ objects, bytes uint64 }
			got := map[string]sum{}
			for _, s := range Live(r.View(), last.GC) {
				k := s.Class + s.Loader
				got[k] = sum{got[k].objects + s.Objects, got[k].bytes + s.Bytes}
				if s.Objects < s.ObjectsLow || s.Objects > s.ObjectsHigh || s.Bytes < s.BytesLow ||
					s.Bytes > s.BytesHigh ||
					s.Objects < s.Samples {
					t.Errorf("%+v", s)
				}
				switch {
				case s.Child == BeforeRecording:
					if before += s.Objects; r.JVM.Flags&trace.JVMAtStart != 0 && s.Objects > 0 {
						t.Errorf("before a tape that is whole: %+v", s)
					}
				case s.Child == "":
					inferred += s.Objects - s.Samples
				}
			}
			want := map[string]sum{}
			for _, c := range MakeHistogram(r.View(), last).Classes {
				k := c.Class + c.Loader
				want[k] = sum{want[k].objects + c.Objects, want[k].bytes + c.Bytes}
			}
			if !maps.Equal(got, want) {
				t.Errorf("seed %d: children add up to\n%v, the classes have\n%v", seed, got, want)
			}
		}
	}
	if inferred == 0 || before == 0 {
		t.Error("nothing was inferred, or before the recording")
	}
	t.Logf("%d objects inferred, %d before the recording", inferred, before)
}

// TestShares holds that the shares of a kind and what is kept for sites not seen are probabilities, and that kinds
// without samples ask their class.
func TestShares(t *testing.T) {
	c := Class{Name: "x"}
	a, b := kind{c, 3, 1}, kind{c, 3, 2}
	st := &Strata{kinds: map[kind]*stratum{a: {n: 30, sites: map[uint64]float64{1: 28, 2: 2}}, b: {}},
		classes: map[Class]*stratum{}}
	st.classes[c] = &stratum{n: 30, sites: map[uint64]float64{1: 28, 2: 2}}
	st.byKind, st.byClass = prior{0.5, 0.5}, prior{0.5, 0.5}
	for _, k := range []kind{a, b} {
		sum, top := 0.0, 0.0
		st.shares(k, func(f uint64, p float64) {
			if sum += p; f == 1 {
				top = p
			}
		})
		if math.Abs(top-0.9016) > 0.001 || sum >= 1 || sum < 0.9 {
			t.Errorf("%+v: %v of the first site, %v of all", k, top, sum)
		}
	}
}

// TestFit learns how many sites kinds have: of few and frequent ones little mass is kept, of many rare ones most.
func TestFit(t *testing.T) {
	few, many := map[int]*stratum{}, map[int]*stratum{}
	for i := range 50 {
		few[i] = &stratum{n: 40, sites: map[uint64]float64{1: 38, 2: 2}}
		x := &stratum{n: 12, sites: map[uint64]float64{100: 2}}
		for k := range uint64(10) {
			x.sites[k] = 1
		}
		many[i] = x
	}
	f, m := fit(few), fit(many)
	if u := f.unseen(40, 2); u > 0.06 {
		t.Errorf("few sites: %+v keeps %.3f", f, u)
	}
	if u := m.unseen(12, 11); u < 0.75 || u > 0.95 {
		t.Errorf("many sites: %+v keeps %.3f", m, u)
	}
	if n := fit(map[int]*stratum{}); n.discount != 0.5 || n.strength < 0.5 {
		t.Errorf("nothing: %+v", n)
	}
}
