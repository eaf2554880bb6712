package heap

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// TestWeightsAcrossChange lets threads allocate while the sampling interval changes: a thread draws its next sample
// with the interval in force at the one before, and so are weights made. Sums stay unbiased; with the interval in force
// at the sample itself they would not.
func TestWeightsAcrossChange(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const trials, objects, before, after = 4000, 400, 4 << 10, 256 << 10
	var right, wrong, square float64
	truth := 0.0
	for range trials {
		var sum, other float64
		interval, drawn := float64(before), float64(before)
		left := rng.ExpFloat64() * interval
		truth = 0
		for i := range objects {
			if i == objects/2 {
				interval = after
			}
			size := uint64(64 + i%7*100)
			truth += float64(size)
			if left -= float64(size); left > 0 {
				continue
			}
			sum += float64(size) * trace.Weight(size, uint64(drawn))
			other += float64(size) * trace.Weight(size, uint64(interval))
			drawn = interval
			left = rng.ExpFloat64() * interval
		}
		right += sum
		wrong += other
		square += sum * sum
	}
	mean := right / trials
	deviation := math.Sqrt((square/trials - mean*mean) / trials)
	t.Logf("%.0f bytes, estimated %.0f ± %.0f, with the later interval %.0f", truth, mean, deviation, wrong/trials)
	if math.Abs(mean-truth) > 4*deviation {
		t.Errorf("the mean of %d estimates is %.0f ± %.0f, want %.0f", trials, mean, deviation, truth)
	}
	if math.Abs(wrong/trials-truth) < 8*deviation {
		t.Errorf("the later interval gives %.0f: this test shows nothing", wrong/trials)
	}
}
