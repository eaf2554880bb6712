package stats

import (
	"cmp"
	"math"
	"slices"
)

const blocksOf = 12 // increments of the coarse test of drift

// Drift gives the probability that a series whose increments have mean 0 ends as high as v: Student's test on the
// increments beyond those of a steady growth over t. It is made of the points themselves and of a few long blocks of
// equal time, which hold bursts that last for several collections. The larger probability counts.
func Drift(t, v []float64) float64 {
	last := len(v) - 1
	if last < 1 || v[last] <= v[0] || t[last] <= t[0] {
		return 1
	}
	blocks := make([]float64, blocksOf+1)
	for i := range blocks {
		blocks[i] = t[0] + (t[last]-t[0])*float64(i)/blocksOf
	}
	p := drift(t, v)
	if last > blocksOf {
		levels := make([]float64, len(blocks))
		for i, x := range blocks {
			levels[i] = between(t, v, x)
		}
		p = max(p, drift(blocks, levels))
	}
	return p
}

func drift(t, v []float64) float64 {
	n := len(v) - 1
	rate, square := (v[n]-v[0])/(t[n]-t[0]), 0.0
	rest := make([]float64, n)
	for i := range rest {
		rest[i] = v[i+1] - v[i] - rate*(t[i+1]-t[i])
		square += rest[i] * rest[i]
	}
	square *= lasting(rest, square)
	mean, df := (v[n]-v[0])/float64(n), float64(n-1)
	return studentTail(mean*mean*float64(n)*df/square, df) // infinite if all increments are the same
}

// studentTail gives how often Student's t exceeds the root of tt, by Wallace's approximation.
func studentTail(tt, df float64) float64 {
	z := (8*df + 1) / (8*df + 3) * math.Sqrt(df*math.Log1p(tt/df))
	return math.Erfc(z/math.Sqrt2) / 2
}

// Line gives the probability that points that only vary around a level rise along a line as v does over t: Student's
// test of the regression. The points must be independent.
func Line(t, v []float64) float64 {
	n := float64(len(v))
	if n < 3 {
		return 1
	}
	var mt, mv, tt, tv, vv float64
	for i := range v {
		mt, mv = mt+t[i]/n, mv+v[i]/n
	}
	for i := range v {
		x, y := t[i]-mt, v[i]-mv
		tt, tv, vv = tt+x*x, tv+x*y, vv+y*y
	}
	if tv <= 0 {
		return 1
	}
	rest := max(0, vv-tv*tv/tt)
	return studentTail((n-2)*(vv-rest)/rest, n-2)
}

const enoughToLast = 20 // increments: of fewer nobody can say how they hang together

// lasting is the share of the square of increments that adds up. Noise of the level counts in two of them, and the
// second takes back what the first gave: three lags with Bartlett's weights, at least a fifth.
func lasting(d []float64, square float64) float64 {
	if len(d) < enoughToLast || square == 0 {
		return 1
	}
	f := 1.0
	for lag := 1; lag <= 3; lag++ {
		c := 0.0
		for i := lag; i < len(d); i++ {
			c += d[i] * d[i-lag]
		}
		f += 2 * (1 - float64(lag)/4) * c / square
	}
	return min(1, max(f, 0.2))
}

// between gives the level at a time from its first point to its last.
func between(t, v []float64, at float64) float64 {
	i, _ := slices.BinarySearch(t, at)
	switch {
	case i == 0:
		return v[0]
	case i == len(t):
		return v[i-1]
	case t[i] == t[i-1]:
		return v[i]
	}
	return v[i-1] + (v[i]-v[i-1])*(at-t[i-1])/(t[i]-t[i-1])
}

// Trend gives the median of pairwise slopes of v over t with its 95 % interval (Sen), and the probability that a series
// without a trend rises like that: Mann–Kendall's test, its variance corrected for ties and for autocorrelation.
func Trend(t, v []float64) (slope, low, high, p float64) {
	var slopes []float64
	s := 0.0
	for i := range v {
		for j := i + 1; j < len(v); j++ {
			if t[j] > t[i] {
				slopes = append(slopes, (v[j]-v[i])/(t[j]-t[i]))
			}
			s += float64(cmp.Compare(v[j], v[i]))
		}
	}
	if len(slopes) == 0 || s <= 1 {
		return 0, 0, 0, 1
	}
	slices.Sort(slopes)
	slope = slopes[len(slopes)/2]
	_, ties := ranks(v)
	n := float64(len(v))
	variance := (n*(n-1)*(2*n+5) - ties) / 18 * Inflation(t, v, slope)
	c := Normal * math.Sqrt(variance)
	at := func(x float64) float64 { return slopes[int(min(max(x, 0), float64(len(slopes)-1)))] }
	m := float64(len(slopes))
	return slope, at((m - c) / 2), at((m+c)/2 + 1), math.Erfc((s-1)/math.Sqrt(2*variance)) / 2
}

// Sen is the median of the slopes of v over t between all pairs of points, with its 95 % interval by Kendall's
// variance, corrected for autocorrelation; zeros where no two points differ in time.
func Sen(t, v []float64) (slope, low, high float64) {
	var slopes []float64
	for i := range v {
		for j := i + 1; j < len(v); j++ {
			if t[j] > t[i] {
				slopes = append(slopes, (v[j]-v[i])/(t[j]-t[i]))
			}
		}
	}
	if len(slopes) == 0 {
		return 0, 0, 0
	}
	slices.Sort(slopes)
	slope = slopes[len(slopes)/2]
	n, m := float64(len(v)), float64(len(slopes))
	c := Normal * math.Sqrt(n*(n-1)*(2*n+5)/18*Inflation(t, v, slope))
	if math.IsNaN(c) {
		c = m
	}
	at := func(x float64) float64 { return slopes[int(min(max(x, 0), m-1))] }
	return slope, at((m - c) / 2), at((m+c)/2 + 1)
}

// Inflation is Hamed and Rao's factor: by how much the variance of Mann–Kendall's sum is larger than that of
// independent values, from the autocorrelation of the ranks of what the trend leaves over. Lags whose correlation could
// be chance count as none.
func Inflation(t, v []float64, slope float64) float64 {
	rest := make([]float64, len(v))
	for i := range v {
		rest[i] = v[i] - slope*t[i]
	}
	r, _ := ranks(rest)
	n := float64(len(r))
	mean, square := (n+1)/2, 0.0
	for i := range r {
		r[i] -= mean
		square += r[i] * r[i]
	}
	if square == 0 {
		return 1
	}
	sum := 0.0
	for lag := 1; lag < len(r)-2; lag++ {
		c := 0.0
		for i := lag; i < len(r); i++ {
			c += r[i] * r[i-lag]
		}
		if c /= square; math.Abs(c) > 1.96/math.Sqrt(n) {
			k := n - float64(lag)
			sum += k * (k - 1) * (k - 2) * c
		}
	}
	return max(1, 1+2*sum/(n*(n-1)*(n-2)))
}

// ranks gives the ranks of v from 1, equal values the middle of theirs, and Σ t(t−1)(2t+5) over groups of t equal
// values.
func ranks(v []float64) (r []float64, ties float64) {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(v[a], v[b]) })
	r = make([]float64, len(v))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && v[order[j]] == v[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			r[k] = float64(i+1+j) / 2
		}
		g := float64(j - i)
		ties += g * (g - 1) * (2*g + 5)
		i = j
	}
	return r, ties
}
