package leak

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// eachSecond runs a window of n collections, one a second, each with its sampling interval.
func eachSecond(n int, interval func(i int) uint64) (*heap.Replay, *detector) {
	r, h := heap.NewReplay(&analysistest.Source{}), NewDetector()
	for i := range n {
		h.Collection(&r.Cursor, &heap.Collection{Pause: trace.Pause{GC: uint64(i + 1), Kind: trace.PauseYoung,
			Interval: interval(i), Start: uint64(i+1) * 1e9, PhaseStart: uint64(i) * 1e9}})
		h.thinned = nil // the series are the test's own
	}
	h.To = float64(n)
	return r, h
}

// changing runs a window of a second a collection, the sampling interval of which changes, with a site of which so many
// bytes live at a time, and floors at a half and at the end. It says in how many of 100 the site has a verdict.
func changing(interval func(i int) uint64, bytes func(t float64) float64) (named int) {
	const n, trials = 60, 100
	rng := rand.New(rand.NewPCG(19, 6))
	for range trials {
		r, h := eachSecond(n, interval)
		h.floor(n / 2)
		h.floor(n - 1)
		s := &history.Series{}
		for i := range n {
			size := float64(max(4000, interval(i))) // where each object is a sample, of its own size
			for x := rng.ExpFloat64(); x < (bytes(float64(i+1))-bytes(float64(i)))/size; x += rng.ExpFloat64() {
				s.Taken++
				s.Add(int32(i), 1, size)
				s.Last = h.Times[i]
			}
		}
		h.Sites[key(1)] = s
		if l := h.Report(&r.Cursor); len(l.Verdicts) > 0 {
			named++
		}
	}
	return named
}

// TestSamplesOfOtherIntervals: a cache that fills up is none because samples come more densely meanwhile, and a leak is
// one although they come more sparsely.
func TestSamplesOfOtherIntervals(t *testing.T) {
	denser := func(i int) uint64 {
		if i < 15 {
			return 512 << 10
		}
		return 64 << 10
	}
	sparser := func(i int) uint64 {
		if i < 45 {
			return 64 << 10
		}
		return 512 << 10
	}
	overflows := func(i int) uint64 {
		if i < 10 {
			return 0
		}
		return 64 << 10
	}
	fine := func(int) uint64 { return 64 << 10 }
	cache := func(t float64) float64 { return 60e6 * (1 - math.Exp(-t/15)) }
	leak := func(t float64) float64 { return 1e6 * t }
	for name, interval := range map[string]func(int) uint64{"fine": fine, "denser": denser, "sparser": sparser,
		"overflows": overflows} {
		if n := changing(interval, cache); n > 3 {
			t.Errorf("%s: a cache that fills up is named %d times of 100", name, n)
		}
		if n := changing(interval, leak); n < 90 {
			t.Errorf("%s: a leak is named %d times of 100", name, n)
		}
	}
}

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
		r, h := eachSecond(n, interval)
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
