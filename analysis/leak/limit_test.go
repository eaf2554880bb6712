package leak

import (
	"math/rand/v2"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/heap"
)

// TestDetectionLimit finds how many samples a leak must have in the window to be named in 95 of 100 recordings, beside
// 60 sites that live as those of services do: the detection limit that docs/explanation/leak-detection.md states, in
// sampling intervals.
func TestDetectionLimit(t *testing.T) {
	const trials = 100
	rng := rand.New(rand.NewPCG(11, 12))
	poisson := func(mean float64) (k float64) {
		for p := rng.ExpFloat64(); p < mean; p += rng.ExpFloat64() {
			k++
		}
		return k
	}
	bear := func(h *detector, s *history.Series, i int, born float64) { // at any time before collection i
		for range int(born) {
			h.Event(s, history.Event{T: h.Times[i] - rng.Float64()*60/float64(len(h.Times)), N: 1, Bytes: 524288})
		}
	}
	for _, n := range []int{4, 12, 60, 240} { // collections
		for _, c := range []struct{ samples, least float64 }{{8, 0}, {12, 0}, {16, 0}, {20, 0.8}, {24, 0.95}} {
			found := 0.0
			for range trials {
				h := NewDetector()
				for i := range n {
					h.Times = append(h.Times, float64(i+1)*60/float64(n))
				}
				h.floor(max(1, n/4))
				for k := range uint64(20) {
					s := &history.Series{}
					alive := 0.0
					for i := range n {
						died := 0.0
						for range int(alive) {
							if rng.Float64() < 10/float64(n) {
								died++
							}
						}
						born := poisson(30 / float64(n))
						s.Taken += born
						alive += born - died
						if born > 0 {
							s.Add(int32(i), int32(born), born*524288)
							bear(h, s, i, born)
						}
						if died > 0 {
							s.Add(int32(i), -int32(died), -died*524288)
							h.Event(s, history.Event{T: h.Times[i], N: -died, Bytes: -died * 524288})
						}
					}
					h.Sites[key(k)] = s
				}
				s := &history.Series{}
				for i := range n {
					if born := poisson(c.samples / float64(n)); born > 0 {
						s.Taken += born
						s.Add(int32(i), int32(born), born*524288)
						bear(h, s, i, born)
					}
				}
				h.Sites[key(1000)] = s
				for i, v := range h.Verdicts(heap.NewReplay(&analysistest.Source{}).Position()) {
					if i == 0 && v.LiveSamples == int(s.LiveSamples) {
						found++
					}
				}
			}
			t.Logf("%d collections, a leak of %v sampling intervals: named first in %.2f", n, c.samples, found/trials)
			if found/trials < c.least {
				t.Errorf("%d collections, a leak of %v sampling intervals is named first in %.2f, want %.2f", n,
					c.samples, found/trials, c.least)
			}
		}
	}
}
