package whatif

import (
	"context"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/lifetimes"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/tiers"
	"github.com/heapcam/heapcam/trace"
)

// TestAdvise: a program that spends much time in small collections is advised a heap that Answer predicts to halve it;
// one for which the JVM changes its sizes, or that spends little time there, is not.
func TestAdvise(t *testing.T) {
	tiers.Gate(t, "advice from generated programs")
	defer func(n float64) { made = n }(made)
	made = 1 << 14
	for _, collector := range []uint64{trace.CollectorSerial, trace.CollectorParallel} {
		tape, err := lifetimes.Read(heap.NewReplay(&analysistest.Source{B: analysistest.Program(0, collector, 24)}))
		if err != nil {
			t.Fatal(err)
		}
		m, err := New(tape)
		if err != nil {
			t.Fatal(err)
		}
		a, err := m.Advise(context.Background())
		if err != nil || a == nil || a.After.High > a.Before/2 || a.Heap == 0 || a.Flags == "" {
			t.Fatalf("collector %d: %+v, %v", collector, a, err)
		}
		m.Doubts = []string{"adaptive sizing"}
		if a, err := m.Advise(context.Background()); a != nil || err != nil {
			t.Errorf("in spite of a doubt: %+v, %v", a, err)
		}
		m.Doubts = nil
		for i := range tape.Epochs {
			tape.Epochs[i].Mutator *= 1000
		}
		if a, err := m.Advise(context.Background()); a != nil || err != nil {
			t.Errorf("for little time: %+v, %v", a, err)
		}
		ctx, stop := context.WithCancel(context.Background())
		stop()
		for i := range tape.Epochs {
			tape.Epochs[i].Mutator /= 1000
		}
		if _, err := m.Advise(ctx); err == nil {
			t.Error("it is not interrupted")
		}
	}
}
