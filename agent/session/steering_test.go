package session

import (
	"slices"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/trace"
)

// TestLowestWishWins: the lowest of the wished depths wins, and a limit without a wish has no effect.
func TestLowestWishWins(t *testing.T) {
	for want, w := range map[uint64]wishes{
		trace.DepthFull:      {},
		trace.DepthSurvivors: {cpu: trace.DepthSurvivors},
		trace.DepthSamples:   {write: trace.DepthSurvivors, budget: trace.DepthSamples, cpu: trace.DepthFull},
	} {
		if got := w.depth(trace.DepthFull); got != want {
			t.Errorf("%+v: %d, want %d", w, got, want)
		}
	}
	if got := (wishes{write: trace.DepthFull}).depth(trace.DepthSamples); got != trace.DepthSamples {
		t.Errorf("a limit asks for more than the probe was loaded with: %d", got)
	}
}

// TestWriteLimit: a recording that writes too much is lowered, for the limit that is broken; when the limits are lifted
// there is no wish any more.
func TestWriteLimit(t *testing.T) {
	for key, l := range map[string]*Limits{
		"max_write_rate":       {MaxWriteRate: 1000, MaxTotalWriteRate: 1e6},
		"max_total_write_rate": {MaxTotalWriteRate: 1000},
	} {
		w := newWriteLimit(quota.NewSharedRate("max_total_write_rate", l.MaxTotalWriteRate))
		w.setLimits(l)
		now, written := time.Unix(1e9, 0), int64(0)
		step := func() (quota.Limit, bool) {
			now, written = now.Add(time.Second), written+5000
			return w.observe(now, written, trace.DepthFull)
		}
		var why quota.Limit
		for change, i := false, 0; i < 30 && !change; i++ {
			why, change = step()
		}
		if w.depth != trace.DepthSurvivors || why != (quota.Limit{Key: key, PerSecond: 1000}) {
			t.Errorf("depth %d for %+v, want %s", w.depth, why, key)
		}
		w.setLimits(&Limits{})
		for range 30 {
			if _, change := step(); change {
				t.Error("without a limit the depth is changed")
			}
		}
		if w.depth != 0 {
			t.Errorf("%d is still wanted", w.depth)
		}
	}
}

// TestCPULimit: a recording that takes too much of the agent's CPU is compressed faster first, then recorded at a lower
// depth. What an earlier agent left holds.
func TestCPULimit(t *testing.T) {
	c := cpuLimit{process: quota.NewProcess(0.01, 0)}
	if ease := c.begin(trace.DepthFull, 0, true); ease != 0 {
		t.Errorf("compression is eased by %d at once", ease)
	}
	now := time.Unix(1e9, 0)
	var got []cpuChange
	for range 60 {
		now = now.Add(time.Second)
		c.spent += 100 * time.Millisecond
		if x, change := c.observe(now); change {
			x.why = quota.Limit{}
			got = append(got, x)
		}
	}
	want := []cpuChange{
		{depth: trace.DepthFull, ease: 1}, {depth: trace.DepthFull, ease: 2},
		{depth: trace.DepthSurvivors, ease: 2, lower: true}, {depth: trace.DepthSamples, ease: 2, lower: true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if !c.clear() || c.clear() || c.depth != 0 {
		t.Error("limiting does not end")
	}
	ease := c.begin(trace.DepthFull, trace.DepthSamples, true)
	if ease != quota.EaseLevels || c.depth != trace.DepthSamples {
		t.Errorf("what an earlier agent left: depth %d, eased by %d", c.depth, ease)
	}
}
