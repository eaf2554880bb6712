package stats

import "math"

// PoissonAtMost is the probability that a Poisson count of a mean is k or less. For large means, whose terms are too
// small for a float64, it is the approximation of Wilson and Hilferty.
func PoissonAtMost(mean, k float64) float64 {
	if mean > 500 {
		n := 9 * (k + 1)
		z := (math.Cbrt(mean/(k+1)) - 1 + 1/n) * math.Sqrt(n)
		return math.Erfc(z/math.Sqrt2) / 2
	}
	term := math.Exp(-mean)
	sum := term
	for i := 1.0; i <= k && i < 2000; i++ {
		term *= mean / i
		sum += term
	}
	return sum
}

// BinomialAtMost is the probability that k or fewer of n happen, each of which does so with probability p < 1.
func BinomialAtMost(n, k, p float64) float64 {
	if p >= 1 {
		p = 1 - 1/(n+2)
	}
	sum := 0.0
	for i := 0.0; i <= k; i++ {
		a, _ := math.Lgamma(n + 1)
		b, _ := math.Lgamma(i + 1)
		c, _ := math.Lgamma(n - i + 1)
		sum += math.Exp(a - b - c + i*math.Log(p) + (n-i)*math.Log1p(-p))
	}
	return min(1, sum)
}
