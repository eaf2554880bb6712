package analysis

import (
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestLostAtEnd: collections that were lost after the newest one that is stored count as those before it do.
func TestLostAtEnd(t *testing.T) {
	m := tracetest.New(tracetest.Config{Seed: 2})
	lost := func(n uint64) trace.Block { return trace.EncodeGap(trace.Gap{Reason: trace.GapOverflow, Epochs: n}) }
	var bs []trace.Block
	for i := range 6 {
		bs = append(bs, m.Step(i == 0).Blocks...)
	}
	bs = append(bs, lost(3), trace.EncodeEnd(trace.End{Reason: trace.EndDeath}), lost(4))
	src := func() *analysistest.Source { return &analysistest.Source{B: bs} }
	rep, err := MakeReport(heap.NewReplay(src()), leak.Options{})
	if err != nil || rep.LostEpochs != 7 {
		t.Errorf("report: %v, %d lost", err, rep.LostEpochs)
	}
	outline, err := Outline(src())
	if err != nil || outline.LostEpochs != 7 {
		t.Errorf("outline: %v, %d lost", err, outline.LostEpochs)
	}
	cov, err := sites.MakeCoverage(heap.NewReplay(src()))
	if err != nil || cov.LostEpochs != 7 {
		t.Errorf("coverage: %v, %d lost", err, cov.LostEpochs)
	}
}
