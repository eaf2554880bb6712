package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// draws counts, over populations of which so many samples are expected, how often intervals hold the truth; of those
// with a sample.
func draws(rng *rand.Rand, expected, p float64, spread int, trials int) (objects, bytes float64) {
	const size = 64
	seen := 0.0
	for range trials {
		var o, b Total
		truth, n := 0.0, max(1, int(math.Round(expected/p)))
		taken := uint64(0)
		one := func(x, p float64) {
			o.Add(1, 1/p)
			b.Add(x, 1/p)
			taken++
		}
		interval := -size / math.Log1p(-min(p, 1-1e-12))
		if spread == 0 { // only those that are drawn cost time
			truth = float64(n) * size
			for at := skip(rng, p); at < n; at += 1 + skip(rng, p) {
				one(size, p)
			}
		} else {
			for range n {
				x := float64(size/2 + rng.IntN(spread))
				truth += x
				if q := -math.Expm1(-x / interval); rng.Float64() < q {
					one(x, q)
				}
			}
		}
		if taken == 0 {
			continue
		}
		seen++
		if l, h := o.Bounds(o.Sum, taken, 1<<62); l <= uint64(n) && uint64(n) <= h {
			objects++
		}
		if l, h := b.Interval(); l <= truth*(1+1e-9) && truth <= h*(1+1e-9) {
			bytes++
		}
	}
	return objects / seen, bytes / seen
}

// skip is how many objects in a row are not drawn.
func skip(rng *rand.Rand, p float64) int {
	if p >= 1 {
		return 0
	}
	return int(math.Log1p(-rng.Float64()) / math.Log1p(-p))
}

// TestIntervalCoverage draws samples of populations of known size and counts how often the 95 % interval holds the
// truth, of those that have a sample: at each number of samples that can be expected, for rare and frequent draws, for
// objects of one size and of sizes that differ.
//
// What it holds, over these cases: objects of one size, or of sizes within a factor of three, 95 % or more (up to 100 %
// for one or two samples, whose bounds are wide); bytes 94 % or more; objects of sizes within a factor of 30, which are
// drawn 30 times as often, 91 % or more.
func TestIntervalCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, p := range []float64{0.001, 0.1, 0.3, 0.5, 0.7, 0.9} {
		for _, n := range []float64{1, 2, 3, 5, 10, 30, 100} {
			for spread, least := range map[int][2]float64{0: {0.95, 0.94}, 64: {0.95, 0.94}, 1000: {0.91, 0.93}} {
				trials := 20000
				if spread > 0 {
					trials = 2000
				}
				if spread > 0 && p < 0.1 {
					continue // as many draws as objects
				}
				o, b := draws(rng, n, p, spread, trials)
				t.Logf("p %.3f, %3.0f samples, sizes %d: %.4f of objects, %.4f of bytes", p, n, spread, o, b)
				chance := 3 * math.Sqrt(0.05*0.95/float64(trials)) // of the simulation itself
				if o < least[0]-chance || b < least[1]-chance {
					t.Errorf("p %.3f, %.0f samples, sizes %d: holds %.4f of objects, %.4f of bytes", p, n, spread, o, b)
				}
			}
		}
	}
}

// TestIntervalMissed draws half of a population, or less, while the probability is 32 times less: mostly no sample of
// that time is seen, and without Miss the interval holds the truth of as many as 60 % only.
func TestIntervalMissed(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, late := range []int{100, 300, 1000, 2000, 4000} { // objects of 2000 to 4000
		const early, p, rare, trials = 2000, 0.02, 0.02 / 32, 4000
		holds, without, seen := 0.0, 0.0, 0.0
		for range trials {
			var with, plain Total
			n := uint64(0)
			samples := func(objects int, p, missed float64) {
				for range objects {
					if rng.Float64() < p {
						n++
						with.Add(1, 1/p)
						with.Miss(1, missed)
						plain.Add(1, 1/p)
					}
				}
			}
			samples(early, p, NoneDrawn/rare)
			samples(late, rare, 0)
			if n == 0 {
				continue
			}
			seen++
			truth := uint64(early + late)
			if l, h := with.Bounds(with.Sum, n, 1<<62); l <= truth && truth <= h {
				holds++
			}
			if l, h := plain.Bounds(plain.Sum, n, 1<<62); l <= truth && truth <= h {
				without++
			}
		}
		t.Logf("%d objects at a longer interval: holds %.3f, %.3f without what may be missing", late, holds/seen,
			without/seen)
		if holds/seen < 0.93 {
			t.Errorf("%d objects at a longer interval: holds %.3f", late, holds/seen)
		}
	}
}

// TestIntervalOfAll: where each object is a sample there is nothing to estimate; and bounds keep to what was seen and
// to what there is.
func TestIntervalOfAll(t *testing.T) {
	var all, few Total
	for range 7 {
		all.Add(24, 1)
	}
	if l, h := all.Interval(); l != 168 || h != 168 {
		t.Errorf("%v to %v", l, h)
	}
	few.Add(1, 500)
	if l, h := few.Bounds(3, 1, 3); l != 1 || h != 3 {
		t.Errorf("one sample of three objects: %d to %d", l, h)
	}
	var none Total
	if l, h := none.Bounds(0, 0, 9); l != 0 || h != 0 {
		t.Errorf("nothing: %d to %d", l, h)
	}
}

// TestCountBounds holds the bounds of counts to Garwood's, as tables have them, and to each other where the
// approximation takes over.
func TestCountBounds(t *testing.T) {
	for k, want := range map[float64]float64{1: 5.572, 2: 7.225, 5: 11.668, 10: 18.390, 20: 30.889} {
		if _, h := countBounds(k); math.Abs(h-want) > 0.002 {
			t.Errorf("up to %v of %v, want %v", h, k, want)
		}
	}
	was, wasHigh := 0.0, 0.0
	for k := 1.0; k < 40; k += 0.01 {
		l, h := countBounds(k)
		if l < was || h < wasHigh || l > k || h < k {
			t.Fatalf("%v: %v to %v after %v to %v", k, l, h, was, wasHigh)
		}
		was, wasHigh = l-0.01, h-0.03
	}
}
