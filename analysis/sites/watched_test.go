package sites

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/heap/symbols"
	"github.com/heapcam/heapcam/internal/tiers"
	"github.com/heapcam/heapcam/trace"
)

// watchOne chooses samples of one site as the probe does (probe/src/watch.c): one in n·share of them, n being how often
// the site was sampled of late, each when the sum of the probabilities comes to a whole.
func watchOne(rnd *rand.Rand, perSecond, seconds int, share float64) (all, watched []*heap.Sample) {
	sampled, phase := 0.0, rnd.Float64()
	for i := range perSecond * seconds {
		if i%perSecond == 0 {
			sampled = float64(int(sampled / 2))
		}
		chances := max(1, float64(int(sampled*share)))
		sampled++
		x := &heap.Sample{Sample: trace.Sample{ID: uint64(i + 1), Type: 1, Size: 64, Interval: 64 << 10}}
		x.Weight = trace.Weight(x.Size, x.Interval)
		all = append(all, x)
		if phase += 1 / chances; phase < 1 {
			continue
		}
		phase--
		y := *x
		y.Weight *= chances
		watched = append(watched, &y)
	}
	return all, watched
}

// TestWatchedCoverage says how often the interval of a site with live samples holds what lives, where a part of what
// the site allocates lives.
func TestWatchedCoverage(t *testing.T) {
	tiers.Gate(t, "the coverage of watched objects, by simulation")
	const rounds = 1000
	for _, c := range []struct {
		perSecond int
		share     float64
		lives     float64
	}{{1, 1, 1}, {20, 1, 1}, {20, 4, 1}, {500, 1, 1}, {20, 1, 0.3}, {500, 8, 0.3}} {
		rnd := rand.New(rand.NewPCG(1, uint64(c.perSecond)))
		held, rows, sum, truth := 0, 0, 0.0, 0.0
		for range rounds {
			all, watched := watchOne(rnd, c.perSecond, 20, c.share)
			dead := map[uint64]bool{}
			lives := 0.0
			for _, s := range all {
				if dead[s.ID] = rnd.Float64() >= c.lives; !dead[s.ID] {
					lives += s.Weight
				}
			}
			w, live := NewWatched(), &heap.Live{}
			names := symbols.New()
			w.Add(names, watched)
			for _, s := range watched {
				if !dead[s.ID] {
					live.Put(s.ID, s)
					sum += s.Weight
				}
			}
			truth += lives
			for _, r := range w.Rows(names, live, math.MaxUint64, 1) {
				rows++
				if float64(r.ObjectsLow) <= lives && lives <= float64(r.ObjectsHigh) {
					held++
				}
			}
		}
		t.Logf("%+v: held in %d of %d", c, held, rows)
		if held < rows*93/100 {
			t.Errorf("%+v: the interval holds what lives in %d of %d rounds", c, held, rows)
		}
		if sum < 0.9*truth || sum > 1.1*truth {
			t.Errorf("%+v: estimated %.0f in all, %.0f live", c, sum, truth)
		}
	}
}
