package sites

import (
	"maps"
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
			var follow CoverageFollower
			if err := collection.Each(r, func(c *heap.Collection) bool {
				if seed%2 == 1 {
					r.JVM.Flags &^= trace.JVMAtStart
				}
				follow.Follow(&r.Cursor)
				if last = c; c.Known {
					follow.Quality(&r.Cursor)
				}
				return true
			}); err != nil ||
				last == nil ||
				!r.Known {
				continue
			}
			type sum struct{ objects, bytes uint64 }
			got := map[string]sum{}
			for _, s := range Live(r.View(), &follow) {
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
			for _, c := range MakeHistogram(r.View(), last, nil).Classes {
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

// TestRemainder: what rounding leaves over of one row gets the next one. So a class whose sites have all of it leaves
// nothing for the row without a site, neither objects nor bytes.
func TestRemainder(t *testing.T) {
	var over float64
	rest := uint64(1000)
	for range 9 {
		low := uint64(1)
		rest -= apportion(1000.0/9-0.0001, &over, &low, 500, rest, 0)
	}
	if rest != 0 {
		t.Errorf("%d are left", rest)
	}
	over = 0.4
	low := uint64(7)
	if got := apportion(7, &over, &low, 7, 100, 0); got != 7 || over > 0.5 {
		t.Errorf("%d of what is exact, %v are left over", got, over)
	}
}
