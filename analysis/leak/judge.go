package leak

import (
	"math"
	"slices"

	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/stats"
)

// judge says how a series grows: with p 1 if it does not, or not all the time.
func (h *detector) judge(s *history.Series) growth {
	no, refuted := growth{p: 1}, growth{p: 1, refuted: true}
	c := h.curve(s)
	t, v, samples, floors, n := c.t, c.v, c.samples, c.floors, len(c.t)
	kept := keptByFloors(v, floors)
	g := growth{floors: len(floors), samples: samples[n-1]}
	var low []float64
	switch {
	case len(floors) == 0:
		low = envelope(v)
		if c.lateDied > (1-keptYoung)*c.lateBorn || c.born < share*c.taken || h.diedAtOnce(s) {
			return refuted
		}
		var grows bool
		if grows, g.open = h.holderGrows(s, t, low); !grows {
			return refuted
		}
	case kept >= keptMost:
		low = append([]float64{}, v...)
		for last, i := floors[len(floors)-1], floors[len(floors)-1]+1; i < n; i++ {
			low[i] = v[last] + (v[i]-v[last])*kept
		}
		low = envelope(low)
	case len(floors) >= floorsLess: // what is between two floors is mostly garbage
		at := floors
		ft, fv, fs := make([]float64, len(at)), make([]float64, len(at)), make([]float64, len(at))
		for i, f := range at {
			ft[i], fv[i], fs[i] = t[f], v[f], samples[f]
		}
		if ft[len(ft)-1]-ft[0] < (t[n-1]-t[0])/2 {
			return no
		}
		t, v, samples = ft, fv, fs
		low = envelope(v)
	default:
		return no
	}
	if !sustained(t, low) || stopped(t, samples) || h.silent(s) {
		return no
	}
	// Soft references are cleared before the heap is full: what came with as many of them is a cache.
	if grown, _ := h.held(s, t, low); h.like(softReferences, grown, t[len(t)-1]-t[0], float64(s.LiveSamples)) {
		return refuted
	}
	pt, pv, ps := pick(t, v, samples)
	var p float64
	g.slope, g.low, g.high, p = stats.Trend(pt, pv)
	if len(pv) >= minPoints {
		g.test = "Mann-Kendall, drift"
		births := c.born - ps[len(ps)/growthParts] // what was there early is no growth
		immortals := p <= significance && c.died <= (1-keptYoung)*births
		if p = max(p, stats.Drift(pv)); immortals {
			p = min(p, 2*immortal(births, c.died))
		}
	} else {
		g.test = "Mann-Kendall, number of samples"
		if p > 0.1 {
			return no
		}
		p = gained(ps)
	}
	w := t[len(t)-1] - t[0]
	g.p, g.grown = p, low[len(low)-1]-low[0]
	if rate := g.grown / w; g.slope > rate { // what collections of old space took away again is no growth
		g.slope, g.low, g.high = rate, min(g.low, rate), max(g.high, rate)
	}
	// Sampling: the growth is a sum over so many samples.
	if k := max(1, ps[len(ps)-1]-ps[0]); k > 0 {
		g.low = min(g.low, g.slope*stats.HalfChi2(0, k)/k)
		g.high = max(g.high, g.slope*stats.HalfChi2(1, k+1)/k)
	}
	return g
}

// factor is how many times as much lives at the end of a series as early in it; where samples began after their JVM,
// which leaves out what was there before, at most what the heap did.
func (h *detector) factor(t, low []float64, early float64) float64 {
	i, _ := slices.BinarySearch(t, early)
	f := low[len(low)-1] / max(low[min(i, len(low)-1)], 1)
	if h.late {
		var known []float64
		for _, b := range h.Live {
			if b >= 0 {
				known = append(known, b)
			}
		}
		if len(known) > 0 {
			f = min(f, known[len(known)-1]/max(known[0], 1))
		}
	}
	return f
}

// keptByFloors is the share of what a series gained between collections of old space that it has not lost in them; 1 if
// nothing can be said.
func keptByFloors(v []float64, floors []int) float64 {
	gained, was := 0.0, v[0]
	for _, f := range floors {
		if f == 0 {
			was = v[0]
			continue
		}
		gained += max(0, max(v[f-1], v[f])-was)
		was = v[f]
	}
	if gained <= 0 {
		return 1
	}
	return min(1, max(0, was-v[0])/gained)
}

// envelope is what a series never falls below again.
func envelope(v []float64) []float64 {
	out := slices.Clone(v)
	for i := len(out) - 2; i >= 0; i-- {
		out[i] = min(out[i], out[i+1])
	}
	return out
}

// sustained says whether a series that never falls grows all through the window: not in one step, not only at its start
// or its end.
func sustained(t, low []float64) bool {
	from, to := t[0], t[len(t)-1]
	grown := low[len(low)-1] - low[0]
	if grown <= 0 || to <= from {
		return false
	}
	at := func(x float64) float64 {
		i, _ := slices.BinarySearch(t, x)
		switch {
		case i == 0:
			return low[0]
		case i >= len(t):
			return low[len(low)-1]
		case t[i] == t[i-1]:
			return low[i]
		}
		return low[i-1] + (low[i]-low[i-1])*(x-t[i-1])/(t[i]-t[i-1])
	}
	growing, before := 0, low[0]
	var last [growthParts]float64
	for i := range growthParts {
		x := at(from + (to-from)*float64(i+1)/growthParts)
		last[i] = (x - before) / grown
		if last[i] >= 0.2/growthParts {
			growing++
		}
		before = x
	}
	late := last[growthParts-1] + last[growthParts-2]
	return growing >= growthParts*2/3 && slices.Max(last[:]) <= maxStepShare && late >= lateRate/3
}

// stopped says whether a series of samples has less growth in the last sixth of the time than chance gives one that
// continues at lateRate of its mean rate: in one of a hundred such.
func stopped(t, samples []float64) bool {
	n := len(t)
	i, _ := slices.BinarySearch(t, t[n-1]-(t[n-1]-t[0])/growthParts)
	grown := samples[n-1] - samples[0]
	return stats.PoissonAtMost(lateRate*grown*(t[n-1]-t[i])/(t[n-1]-t[0]), max(0, samples[n-1]-samples[i])) < 0.01
}

// pick takes at most points of a series, with both ends, evenly but for those that lie close together.
func pick(t, v, samples []float64) (pt, pv, ps []float64) {
	n, last := min(points, len(t)), len(t)-1
	apart := (t[last] - t[0]) / points / 2 // a storm of collections is one point
	for i := range n {
		k := i * len(t) / n
		if m := len(pt); i < n-1 && m > 0 && (t[k]-pt[m-1] < apart || t[last]-t[k] < apart) {
			continue
		}
		if i == n-1 {
			k = last
		}
		pt, pv, ps = append(pt, t[k]), append(pv, v[k]), append(ps, samples[k])
	}
	return pt, pv, ps
}

// gained gives the probability that a number of samples that only varies around its mean is as much larger at the end:
// the difference of two Poisson counts, by the normal approximation.
func gained(samples []float64) float64 {
	a, b := samples[0], samples[len(samples)-1]
	if b <= a {
		return 1
	}
	return math.Erfc((b-a-1)/math.Sqrt(2*(a+b))) / 2
}

// immortal gives the probability that of so many births and deaths so few are deaths if each is as likely: the exact
// sign test.
func immortal(born, died float64) float64 {
	if born <= died {
		return 1
	}
	return stats.BinomialAtMost(born+died, died, 0.5)
}
