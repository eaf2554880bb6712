package leak

import (
	"math/rand/v2"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// TestIntervalChanges has a sampling interval of 512 KiB for the first fifth of a minute and of 64 KiB after that. The
// smallest leak that the window shows is that of the mean, and it is named in 95 of 100 recordings.
func TestIntervalChanges(t *testing.T) {
	const n, trials, coarse, fine = 60, 100, 512 << 10, 64 << 10
	interval := func(i int) uint64 {
		if i < n/5 {
			return coarse
		}
		return fine
	}
	rng := rand.New(rand.NewPCG(19, 5))
	found := 0.0
	for range trials {
		r, h := heap.NewReplay(&analysistest.Source{}), NewDetector()
		for i := range n {
			h.Collection(&r.Cursor, &heap.Collection{Pause: trace.Pause{GC: uint64(i + 1), Kind: trace.PauseYoung,
				Interval: interval(i), Start: uint64(i+1) * 1e9, PhaseStart: uint64(i) * 1e9}})
		}
		h.To = n
		h.floor(n / 4)
		rate, _ := h.Smallest()
		if want := 24 * (coarse/5.0 + fine*4/5.0) / n; rate < 0.99*want || rate > 1.01*want {
			t.Fatalf("smallest leak of %.0f bytes a second, want %.0f", rate, want)
		}
		s := &history.Series{}
		for i := range n {
			size := float64(interval(i))
			for x := rng.ExpFloat64(); x < rate/size; x += rng.ExpFloat64() {
				s.Taken++
				s.Add(int32(i), 1, size)
				s.Last = h.Times[i]
			}
		}
		h.Sites[key(1)] = s
		if l := h.Report(&r.Cursor); len(l.Verdicts) > 0 {
			found++
		}
	}
	if found < 0.95*trials {
		t.Errorf("named in %.0f of %d windows", found, trials)
	}
}
