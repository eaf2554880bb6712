package quota

import (
	"testing"
	"time"

	"github.com/heapcam/heapcam/trace"
)

// TestRate: a depth that writes too much is left after ten seconds, and tried again when the load has gone.
func TestRate(t *testing.T) {
	load := map[uint64]int64{trace.DepthSamples: 10, trace.DepthSurvivors: 500, trace.DepthFull: 5000} // bytes a second
	var r RateLimit
	r.SetLimits(1000, nil)
	now, written, depth := time.Unix(1, 0), int64(0), uint64(trace.DepthFull)
	var at []uint64
	run := func(seconds int, factor int64) (changes int) {
		for range seconds {
			now = now.Add(time.Second)
			written += load[depth] * factor
			if d, change := r.Observe(now, written, depth); change {
				depth = d
				changes++
				at = append(at, d)
			}
		}
		return changes
	}
	run(30, 1)
	if depth != trace.DepthSurvivors {
		t.Fatalf("after 30 s of five times the limit the depth is %d", depth)
	}
	if n := run(600, 1); n != 0 {
		t.Errorf("half of the limit changed the depth %d times: %v", n, at)
	}
	run(30, 10)
	if depth != trace.DepthSamples {
		t.Errorf("the depth is %d", depth)
	}
	written = 0 // a store that was opened again
	run(2400, 0)
	if depth != trace.DepthFull {
		t.Errorf("without any load the depth is %d", depth)
	}
	// A load that is too much again and again: changes become rare.
	at = nil
	for range 20 {
		run(60, 1)
		run(200, 0)
	}
	if len(at) > 60 {
		t.Errorf("%d changes in %v", len(at), 20*260*time.Second)
	}
	var off RateLimit
	if _, change := off.Observe(now, 1<<40, trace.DepthFull); change {
		t.Error("without a limit the depth is changed")
	}
}
