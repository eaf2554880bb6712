package analysis

import (
	"slices"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/analysistest/sitedtest"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestExactChecked: `coverage` compares the noted site of an object with its sample. Noted are the innermost frame of
// the sample, its caller, and a frame of another stack, which alone is wrong.
func TestExactChecked(t *testing.T) {
	for frame, right := range map[uint64]bool{sitedtest.ExactFrame: true, sitedtest.DrawnStack + 1: true, 1: false} {
		m := tracetest.New(tracetest.All(4, trace.CollectorParallel, trace.DepthSurvivors))
		var bs []trace.Block
		for i := range 20 {
			bs = append(bs, m.Step(i%7 == 0).Blocks...)
		}
		bs = sitedtest.Blocks(t, append(bs, m.End()))
		noted := uint64(0)
		for i, b := range bs {
			switch b.Kind {
			case trace.KindSamples: // all have the first stack, so that its caller is right
				samples, err := trace.DecodeSamples(b)
				if err != nil {
					t.Fatal(err)
				}
				for k := range samples {
					samples[k].Frame = sitedtest.DrawnStack
				}
				bs[i].Payload = trace.EncodeSamples(samples).Payload
			case trace.KindEpoch:
				e, err := trace.DecodeEpoch(b)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range e.Resolved {
					e.Sited = append(e.Sited, trace.SitedAddr{Addr: s.Addr, Frame: frame})
					noted++
				}
				with := trace.EncodeEpoch(e)
				bs[i].Payload, bs[i].Version = with.Payload, with.Version
			}
		}
		q, err := sites.MakeCoverage(heap.NewReplay(&analysistest.Source{B: slices.Clone(bs)}))
		if err != nil {
			t.Fatal(err)
		}
		if q.NotedChecked < noted/2 || q.NotedChecked == 0 || (q.NotedWrong == 0) != right ||
			!right && q.NotedWrong != q.NotedChecked {
			t.Errorf("frame %d: %d of %d compared, %d wrong", frame, q.NotedChecked, noted, q.NotedWrong)
		}
	}
}
