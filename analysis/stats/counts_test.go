package stats

import (
	"math"
	"testing"
)

// TestPoissonAtMost: the sum of terms and the approximation agree, also where exp(−mean) is 0.
func TestPoissonAtMost(t *testing.T) {
	for _, c := range []struct{ mean, k, want float64 }{
		{2, 0, math.Exp(-2)}, {2, 1, 3 * math.Exp(-2)}, {499, 499, 0.512}, {501, 501, 0.512}, {501, 449, 0.0099},
		{499, 447, 0.0099}, {2000, 2000, 0.506}, {2000, 5000, 1}, {2000, 1000, 0}, {1e6, 2e6, 1}, {1e6, 0, 0},
	} {
		if got := PoissonAtMost(c.mean, c.k); math.Abs(got-c.want) > 0.001 {
			t.Errorf("mean %v, at most %v: %v, want %v", c.mean, c.k, got, c.want)
		}
	}
}
