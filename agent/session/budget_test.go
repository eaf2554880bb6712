package session

import (
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/governor"
	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestBudgets: the longer interval wins, only ordinary epochs count as pauses, and without a budget there is no wish.
func TestBudgets(t *testing.T) {
	b := budgets{governed: 1 << 20, sparse: 4 << 20}
	if b.interval() != 4<<20 {
		t.Errorf("interval %d", b.interval())
	}
	for _, c := range []struct{ governed, sparse, want uint64 }{
		{0, 0, 0}, {0, 64 << 10, 64 << 10}, {512 << 10, 64 << 10, 64 << 10}, {1 << 20, 64 << 10, 1 << 20},
		{512 << 10, 0, 512 << 10},
	} {
		if got := (&budgets{asked: 512 << 10, governed: c.governed, sparse: c.sparse}).interval(); got != c.want {
			t.Errorf("governed %d, sparse %d: interval %d, want %d", c.governed, c.sparse, got, c.want)
		}
	}
	b.paused(&trace.Pause{Probe: 5e6, Interval: 1 << 19})
	b.paused(&trace.Pause{Probe: 3e6, Interval: 1 << 20})
	b.paused(&trace.Pause{Probe: 9e6, Interval: 1 << 20, Flags: trace.PauseSyncFollows})
	b.paused(&trace.Pause{Probe: 9e6, Interval: 1 << 20, Kind: trace.PauseWalk})
	if b.longest != 5*time.Millisecond || b.current != 1<<20 {
		t.Errorf("longest %v, interval in force %d", b.longest, b.current)
	}
	b.depth = trace.DepthSamples
	b.governor = governor.New(governor.Config{Share: 0.01, Depth: trace.DepthFull, Interval: 512 << 10})
	b.setLimits(&Limits{BudgetCPU: 0.02}, &stream{})
	if b.governor == nil || b.depth != trace.DepthSamples {
		t.Error("another budget begins anew")
	}
	b.setLimits(&Limits{}, &stream{known: true, jvm: trace.JVM{Depth: trace.DepthSurvivors, Interval: DefaultSampling}})
	if b.governor == nil {
		t.Error("no budget by default")
	}
	b.setLimits(&Limits{}, &stream{known: true, jvm: trace.JVM{Depth: trace.DepthFull, Interval: DefaultSampling}})
	if b.governor != nil || b.depth != 0 || b.interval() != 4<<20 {
		t.Errorf("without a budget: depth %d, interval %d", b.depth, b.interval())
	}
}

// TestBudgetLowersTheDepth: a probe that costs more than its budget gets a lower depth and the cost that its next epoch
// may cost.
func TestBudgetLowersTheDepth(t *testing.T) {
	mem := &sessiontest.MemStore{Limit: 1 << 30}
	r := newRigWith(t, mem, &Limits{BudgetCPU: 0.01, SamplingShare: -1})
	m := tracetest.New(tracetest.All(1, trace.CollectorSerial, trace.DepthFull))
	cost := uint64(0)
	r.wait(func() bool {
		cost += uint64(time.Second)
		r.p.Poke64(shmring.OffProbeNS, cost)
		r.play(m, 1)
		r.drained()
		d := r.p.Peek32(shmring.OffDepthWanted)
		return d != 0 && uint64(d) < trace.DepthFull && r.p.Peek64(shmring.OffEpochMax) > 0
	})
	r.p.End(shmring.StateGoodbye, "")
	r.finish()
	if r.s.steer.budget.depth == 0 || r.s.steer.budget.depth == trace.DepthFull {
		t.Errorf("the governor wants depth %d", r.s.steer.budget.depth)
	}
	// why the depth is lower stays true when the interval changes later
	st := r.s.Status()
	if why := st.DepthWhy; !strings.HasPrefix(why, "depth ") || strings.Contains(why, "sampling every") ||
		!strings.Contains(st.LastSwitch, ", sampling every ") {
		t.Errorf("%q, the newest switch %q", why, st.LastSwitch)
	}
}
