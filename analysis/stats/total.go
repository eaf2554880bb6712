// Package stats holds the statistics that readings of a recording share, so that one fact has one figure wherever it is
// printed: the 95 % interval of what samples stand for (Total), tail probabilities of counts, and trends of series
// (Mann–Kendall's test, Sen's slope).
//
// It knows numbers only: no heap, no recording, no text. Functions are pure; a Total is not safe for concurrent use.
package stats

import (
	"math"
	"sync"
)

// Normal is the 97.5 % quantile of the normal distribution: 95 % lie within ± this many standard deviations.
const Normal = 1.959964

// Total is a Horvitz–Thompson sum of x over samples of weight w = 1/p, p being the probability that the sample was
// drawn: Σwx, Σ(wx)², and the estimate of the sum's variance, Σ(wx)²(1−1/w). Undrawn is what may be missing although
// no sample says so, at most (Miss).
type Total struct {
	Sum, Square, Variance float64
	Undrawn               float64
	drawn                 bool // nothing is missing
}

// Add adds a sample.
func (t *Total) Add(x, w float64) {
	t.Sum += w * x
	t.Square += w * x * w * x
	t.Variance += w * x * w * x * (1 - 1/w)
}

// Draw is Add and, unless missed is below 0, Miss.
func (t *Total) Draw(x, w, missed float64) {
	t.Add(x, w)
	if missed >= 0 {
		t.Miss(x, missed)
	}
}

// Miss says that with a sample that was added w samples' worth of x may be missing: the probability to be drawn was
// less for a time, and none of that time is known. If one is known (w is 0) nothing is missing.
func (t *Total) Miss(x, w float64) {
	t.drawn = t.drawn || w == 0
	t.Undrawn = max(t.Undrawn, w*x)
	if t.drawn {
		t.Undrawn = 0
	}
}

// Plus adds another total, multiplied by f.
func (t *Total) Plus(o Total, f float64) {
	t.Sum += f * o.Sum
	t.Square += f * f * o.Square
	t.Variance += f * f * o.Variance
	t.drawn = t.drawn || o.drawn
	t.Undrawn = max(t.Undrawn, f*o.Undrawn)
	if t.drawn {
		t.Undrawn = 0
	}
}

// Interval gives the 95 % interval of the sum, for a row that is printed because it has a sample.
//
// The number of samples that equal weights would need (Kish's effective size) is taken as a Poisson count. Its bounds
// are Garwood's, the lower one under the condition that there was a sample at all: sites without one have no row, so
// that the few that were lucky overstate theirs. Both are narrowed by the share of the population that was not drawn.
// Where each object was drawn the three are equal. What may be missing besides (Undrawn) is a distance of its own above
// the sum; the two are independent, so that their squares add up (Zou and Donner's variance estimates recovery).
//
// TestIntervalCoverage states how often it holds the truth.
func (t *Total) Interval() (low, high float64) {
	if t.Square == 0 || t.Variance <= 0 {
		return t.Sum, t.Sum
	}
	k := t.Sum * t.Sum / t.Square
	l, h := countBounds(k)
	f := math.Sqrt(t.Variance / t.Square)
	return t.Sum * (1 - (1-l/k)*f), t.Sum + math.Hypot(t.Sum*(h/k-1)*f, t.Undrawn)
}

// NoneDrawn is the mean of a Poisson count that was 0, at most, with a probability of 97.5 %: where samples of weight w
// might have been drawn and none was, there may be as many as NoneDrawn·w.
const NoneDrawn = 3.688879

// Fit is the share of what samples stand for beside themselves that there is room for: own is what they are, rest what
// there is besides. Each sample counts as itself, so a figure is own + Fit·(Sum − own): what has samples never exceeds
// what there is, and is never less than the samples. This is the one estimator of all verbs.
func (t *Total) Fit(own, rest float64) float64 {
	if others := t.Sum - own; others > 0 {
		return min(1, max(0, rest)/others)
	}
	return 0
}

// LeastObject is the size of the smallest Java object in bytes: objects whose site is not known have that much at
// least.
const LeastObject = 16

// Bounds gives the interval of a figure (Fit) as whole numbers: at least own, the samples themselves, at most most, all
// that there is. Where the figure is less than the sum the interval shrinks with it.
func (t *Total) Bounds(figure float64, own, most uint64) (low, high uint64) {
	l, h := t.Interval()
	if others := t.Sum - float64(own); others > 0 {
		f := max(0, figure-float64(own)) / others
		l, h = float64(own)+f*(l-float64(own)), float64(own)+f*(h-float64(own))
	}
	fit := func(x float64) uint64 {
		return min(max(uint64(math.Round(max(0, min(x, 1<<62)))), own), max(most, own))
	}
	return fit(l), fit(h)
}

// exactCounts is the count up to which bounds are exact. Beyond it Wilson and Hilferty's approximation is off by less
// than one in a thousand.
const exactCounts = 30

// steps is how many bounds are kept for each count: effective sizes are not whole.
const steps = 8

// bounds are those of counts 1, 1 + 1/steps, … exactCounts.
var bounds = sync.OnceValue(func() (b [(exactCounts-1)*steps + 2][2]float64) {
	for i := range b {
		k := 1 + float64(i)/steps
		b[i] = [2]float64{
			solve(0, k, func(mean float64) bool { return countAtLeast(k, mean) < 0.025*-math.Expm1(-mean) }),
			solve(k, 4*k+8, func(mean float64) bool { return 1-countAtLeast(k+1, mean) > 0.025 }),
		}
	}
	return b
})

// countBounds gives the 95 % bounds of the mean of a Poisson count that was k, at least 1.
func countBounds(k float64) (low, high float64) {
	if k >= exactCounts {
		return HalfChi2(0, k), HalfChi2(1, k+1)
	}
	b, at := bounds(), max(0, k-1)*steps
	i := int(at)
	part := at - float64(i)
	return b[i][0] + part*(b[i+1][0]-b[i][0]), b[i][1] + part*(b[i+1][1]-b[i][1])
}

// solve finds where below stops to be true between from and to.
func solve(from, to float64, below func(x float64) bool) float64 {
	for range 50 {
		x := (from + to) / 2
		if below(x) {
			from = x
		} else {
			to = x
		}
	}
	return from
}

// countAtLeast is the probability that a Poisson count of a mean is k or more: the incomplete gamma function, which
// holds for k that are not whole.
func countAtLeast(k, mean float64) float64 {
	if mean <= 0 {
		return 0
	}
	term := 1.0
	sum := term
	for i := 1.0; term > 1e-15*sum; i++ {
		term *= mean / (k + i)
		sum += term
	}
	g, _ := math.Lgamma(k + 1)
	return min(1, sum*math.Exp(k*math.Log(mean)-mean-g))
}

// HalfChi2 is half the 2.5 % (tail 0) or 97.5 % (tail 1) quantile of χ² with 2k degrees of freedom, after Wilson and
// Hilferty: with k and k+1 the bounds of the mean of a Poisson count that was k.
func HalfChi2(tail int, k float64) float64 {
	z := Normal * float64(2*tail-1)
	c := max(0, 1-1/(9*k)+z/math.Sqrt(9*k))
	return k * c * c * c
}
