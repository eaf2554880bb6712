package leak

import (
	"math"
	"slices"

	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/stats"
)

const (
	points       = 120 // of a series that are tested
	minPoints    = 8   // fewer: ranks show little, and the number of samples decides
	fewestPoints = 4   // fewer show nothing
	minSamples   = 3   // a site with fewer at any time is no candidate: no test could find it
	ownSamples   = 20  // a site with more samples is tested alone, not together with others

	growthParts = 6 // parts of the window in which growth is looked for
	// share of growth that outlived collections of old space: from here on what is there counts, below only what they
	// left
	keptMost     = 0.7
	keptYoung    = 0.9 // without any such collection: share of the survivors that have not died since
	share        = 0.2 // and of all that was allocated there, share that has survived
	lateRate     = 0.4 // the last third grows at this share of the mean rate, or growth has stopped
	maxStepShare = 0.6 // share of the growth in one part of the window, beyond which it is a step
	floorsLess   = 5   // so many are needed to judge by floors alone
	settledShare = 0.5 // of the growth that was there after the newest floor: more, and it is a leak
	seenShare    = 0.1 // the same: less, and floors say nothing
	thinned      = 8   // objects a sample stands for: from here on samples are independent, whatever the program does
)

// growth is what a series shows.
type growth struct {
	slope, low, high float64 // bytes a second
	grown            float64 // bytes
	p                float64
	test             string
	allocation       bool // it follows the bytes allocated rather than time
	floors           int
	settled          bool       // most of it was still there after a floor
	samples          float64    // at the end
	survives         float64    // share of what was allocated there that survived
	onset            [2]float64 // it began between these times
	open             bool       // whether its holders grow is not known
	refuted          bool       // its objects are known to be dropped, whatever its shape
	why              why        // it is not named
	queued           bool       // its older objects are dead, and it grows all the same
	seeps            bool       // most of its objects die, and the others pile up
	mixed            bool       // most of its objects die, so that others may pile up unseen
	once             bool       // it lives, but nothing shows that it grew steadily between two floors
	counts           [3]uint64  // of its class after the first, a middle and the last floor, if they say that it grows
	alone            string     // the class, if it is named for these alone: what its objects hold is not in the bytes
	exact            bool       // grown and slope rest on exact counts
	stayed           uint64     // objects older than so many seconds that stayed, if they say that it grows
	older            float64
	seen, seenAt     float64 // share of the growth that lived at the newest floor, and when that was
}

// judge says how a series grows: with p 1 if it does not, or not all the time.
func (h *detector) judge(s *history.Series) growth {
	c := h.curve(s)
	g := h.grows(s, &c)
	if g.why == whyFills || g.why == whyStopped {
		h.seeps(&g, s, &c)
	}
	switch g.why {
	case whyFills, whyStopped, whyChance, whyFreed:
		h.stays(&g, s, &c)
	}
	if n := len(c.floors); (g.why == whyFills || g.why == whyStopped) && n > 0 {
		old := h.ages(s, c.t[c.floors[n-1]])
		_, known := old.turnover()
		g.mixed = known && old.alive[0] < asMany*old.taken[0]
	}
	return g
}

// grows is judge for a site with a curve, as far as what it allocates lives and dies alike.
func (h *detector) grows(s *history.Series, of *curve) growth {
	c, t, v, samples, floors, n := *of, of.t, of.v, of.samples, of.floors, len(of.t)
	kept, low := keptByFloors(v, floors), envelope(v)
	g := growth{p: 1, floors: len(floors), samples: samples[n-1], survives: s.Weight(), grown: low[n-1] - low[0]}
	no := func(why why) growth {
		g.p, g.why, g.refuted = 1, why, refutes(why)
		if w := t[len(t)-1] - t[0]; w > 0 {
			g.slope = g.grown / w
			g.bySamples(max(1, g.samples-samples[0]))
		}
		return g
	}
	seen := 0.0 // of the growth, at the newest floor
	if len(floors) > 0 && g.grown > 0 {
		seen = (low[floors[len(floors)-1]] - low[0]) / g.grown
		g.seen, g.seenAt = seen, t[floors[len(floors)-1]]
	}
	g.settled = seen >= settledShare
	end, settled := h.settled()
	old := h.ages(s, end)
	turned, known := old.turnover()
	turned = turned && s.Born > float64(s.LiveSamples) // of few samples the oldest may be missing by chance
	byAge, queue := false, -1.0                        // a queue that grows: the probability of its growth
	switch {
	case settled && len(floors) > 0 && turned && h.keepsAge(s):
		return no(whyTurnover)
	case settled && len(floors) > 0 && turned && len(floors) < floorsLess &&
		(kept < keptMost || !byFloors(t, v, floors)):
		var named bool
		if queue, named = h.queue(&g, s, &c, end); !named {
			return no(whyTurnover)
		}
		g.queued, v, samples = true, refloor(v, floors), refloor(samples, floors)
		low = envelope(v)
	case settled && known && len(floors) > 0 && kept < keptMost && len(floors) < floorsLess:
		byAge, g.settled = true, true
		t, v, samples = h.lasting(s, end)
		low = v
	case len(floors) > 0 && kept < keptMost && len(floors) < floorsLess:
		return no(whyFreed)
	case len(floors) > 0 && kept < keptMost: // what is between two floors is mostly garbage
		last := floors[len(floors)-1]
		if t[last]-t[floors[0]] < (t[n-1]-t[0])/2 {
			return no(whyFreed)
		}
		t, v, samples = at(t, floors), at(v, floors), at(samples, floors)
		low, g.settled = envelope(v), true
	case seen >= seenShare:
		low = envelope(discount(v, floors, kept))
	default:
		g.floors = 0
		if why := h.dropped(&g, s, &c, low); why != whyNot {
			return no(why)
		}
	}
	if h.fillsUp(&g, s, &c, queue >= 0) {
		return no(whyFills)
	}
	g.grown, g.onset = low[len(low)-1]-low[0], onset(t, low)
	clock, ok := h.clockOf(s, &c, t, low, samples)
	if !ok {
		return no(whyStopped)
	}
	g.allocation = clock != nil
	if clock == nil {
		clock = t
	}
	if h.softly(&g, s, t, low) {
		return no(whySoft)
	}
	h.chance(&g, s, &c, clock, v, samples, t[len(t)-1]-t[0])
	if queue >= 0 && g.why == whyNot { // between floors the curve is drawn by hand: its trend shows nothing
		g.p, g.test = queue, "what collections of old space left"
	}
	if byAge { // a curve of what lives never falls: its trend shows nothing
		g.p, g.test = old.chance(), "ages of live objects"
		if g.allocation {
			g.p = min(1, 2*g.p)
		}
	}
	return g
}

// softly says whether a series came as fast as soft references, which are cleared before the heap is full: then it is a
// cache. A reference listing that has some of the growth says more exactly what they hold: nearly each class has
// one, for reflection.
func (h *detector) softly(g *growth, s *history.Series, t, low []float64) bool {
	if h.Soft != nil && g.seen >= seenShare {
		return false
	}
	grown, _ := h.held(s, t, low)
	return h.like(softReferences, grown, t[len(t)-1]-t[0], float64(s.LiveSamples))
}

// refutes says whether a reason shows that the objects are dropped.
func refutes(why why) bool {
	return why == whyDropped || why == whyHolder || why == whySoft || why == whyTurnover || why == whyBeside
}

// dropped says why the objects of a series are dropped by the program, as far as that shows without floors.
func (h *detector) dropped(g *growth, s *history.Series, c *curve, low []float64) why {
	if c.lateDied > (1-keptYoung)*c.lateBorn || h.diedAtOnce(s) {
		return whyDropped
	}
	if c.born < share*c.taken && !h.noded(s, c.t, low) {
		return whyDropped
	}
	var grows bool
	if grows, g.open = h.holderGrows(s, c.t, low); !grows {
		return whyHolder
	}
	return whyNot
}

// at gives the points of a series that are in some places.
func at(v []float64, places []int) []float64 {
	out := make([]float64, len(places))
	for i, k := range places {
		out[i] = v[k]
	}
	return out
}

// discount counts what came after the newest floor with the share that floors kept.
func discount(v []float64, floors []int, kept float64) []float64 {
	out, last := slices.Clone(v), floors[len(floors)-1]
	for i := last + 1; i < len(v); i++ {
		out[i] = v[last] + (v[i]-v[last])*kept
	}
	return out
}

// clockOf gives the clock by which a series grows all the time: nil is time itself, else the bytes that the program
// had allocated at the times t. ok: there is one. Garbage that a floor at the end took away does not say that it
// stopped.
func (h *detector) clockOf(s *history.Series, c *curve, t, low, samples []float64) (at []float64, ok bool) {
	even := samples
	if len(t) == len(c.t) && len(c.floors) > 0 {
		even = refloor(samples, c.floors)
	}
	stops := func(t []float64) bool { return stopped(t, samples) && stopped(t, even) }
	if sustained(t, low) && !stops(t) && !slowing(t, low) && !h.silent(s, h.clockTime) {
		return nil, true
	}
	at = make([]float64, len(t))
	for i, x := range t {
		at[i] = h.AllocatedAt(x)
	}
	return at, h.lately(s, t, low) && sustained(at, low) && !stops(at) && !slowing(at, low) &&
		!h.silent(s, h.AllocatedAt)
}

// chance tests a series against a time, which may be counted in bytes: g gets its slope and probability. w is the
// length of the window in seconds.
func (h *detector) chance(g *growth, s *history.Series, c *curve, at, v, samples []float64, w float64) {
	pt, pv, ps := pick(at, v, samples)
	var p float64
	g.slope, g.low, g.high, p = stats.Trend(pt, pv)
	if g.allocation {
		rate := (at[len(at)-1] - at[0]) / w
		g.slope, g.low, g.high, p = g.slope*rate, g.low*rate, g.high*rate, 2*p // the second of two clocks
	}
	if len(pv) >= minPoints {
		g.test = "Mann-Kendall, drift"
		births := c.born - ps[len(ps)/growthParts] // what was there early is no growth
		immortals := p <= significance && c.died <= (1-keptYoung)*births
		if p = max(p, stats.Drift(pt, pv)); immortals {
			n := independent(s, ps, births)
			p = min(p, 2*immortal(n, c.died*n/max(births, 1)))
		}
	} else {
		g.test = "Mann-Kendall, number of samples"
		if p > 0.1 {
			g.p, g.why = 1, whyChance
			return
		}
		p = gained(ps)
	}
	g.p = min(p, 1)
	if rate := g.grown / w; g.slope > rate || g.allocation { // what floors took away again is no growth
		g.slope, g.low, g.high = rate, min(g.low, rate), max(g.high, rate)
	}
	if g.low <= 0 && g.p < 1 { // it may as well not grow
		g.p, g.why = 1, whyChance
		return
	}
	// Sampling: the growth is a sum over so many samples.
	low, high := g.low, g.high
	g.bySamples(max(1, ps[len(ps)-1]-ps[0]))
	g.low, g.high = min(g.low, low), max(g.high, high)
	// Of what began late the whole window would show too small a rate.
	if since := c.t[len(c.t)-1] - (g.onset[0]+g.onset[1])/2; since > 0 && since < lateOnset*w && g.slope > 0 {
		f := min(max(1, g.grown/since/g.slope), mostLate)
		g.slope, g.low, g.high = f*g.slope, f*g.low, f*g.high
	}
}

const (
	lateOnset = 0.8 // share of the window since the onset of what began late
	mostLate  = 5   // times as fast as over the whole window: less time than that shows no rate
)

// bySamples gives the interval of a rate that n samples show.
func (g *growth) bySamples(n float64) {
	g.low, g.high = g.slope*stats.HalfChi2(0, n)/n, g.slope*stats.HalfChi2(1, n+1)/n
}

// independent says how many births of a series count as such. Where nearly every object is a sample those of one event
// of the program (a class is loaded, a page is compiled) are one.
func independent(s *history.Series, samples []float64, births float64) float64 {
	if s.Objects == 0 || s.Objects >= thinned*s.Taken {
		return births
	}
	rises := 0.0
	for i := len(samples)/growthParts + 1; i < len(samples); i++ {
		if samples[i] > samples[i-1] {
			rises++
		}
	}
	return min(births, rises)
}

// slowBlocks are the parts of the window whose growth slowing compares, slowRate what share of the earlier growth a
// third at its end has to have, and slowSure how many standard errors less make it less.
const (
	slowBlocks = 12
	slowRate   = 0.7
	slowSure   = 2.7
	slowFirst  = 0.01 // share of the growth that came before its begin, at most
)

// slowing says whether a series that never falls grows clearly less in its last third than before, as the start of a
// program or a cache that fills with what is asked for for the first time. Its own increments say how clearly. Where
// it began late, as a line whose stack changed when it was compiled, the time before does not count.
func slowing(t, low []float64) bool {
	n := len(t)
	from, to := t[0], t[n-1]
	for i := 1; i < n && low[i]-low[0] <= slowFirst*(low[n-1]-low[0]) && t[i] <= (t[0]+to)/2; i++ {
		from = t[i]
	}
	if n < slowBlocks || to <= from {
		return false
	}
	var d [slowBlocks]float64
	before := interpolate(t, low, from)
	for i := range d {
		x := interpolate(t, low, from+(to-from)*float64(i+1)/slowBlocks)
		d[i], before = x-before, x
	}
	mean := func(d []float64) (mean, err float64) {
		for _, x := range d {
			mean += x / float64(len(d))
		}
		for _, x := range d {
			err += (x - mean) * (x - mean)
		}
		return mean, err / float64(len(d)*(len(d)-1))
	}
	early, e := mean(d[:slowBlocks*2/3])
	e = min(e, steps(d[:slowBlocks*2/3]))
	late, l := mean(d[slowBlocks*2/3:])
	return slowRate*early-late > slowSure*math.Sqrt(slowRate*slowRate*e+l)
}

// steps gives the variance of the mean of a series from its steps: that it rises or falls steadily does not count.
func steps(d []float64) (v float64) {
	n := len(d)
	for i := 1; i < n; i++ {
		v += (d[i] - d[i-1]) * (d[i] - d[i-1]) / float64(2*(n-1)*n)
	}
	return v
}

// lately says whether some of the growth is of the last third of the time: a program that is idle for ever has started,
// and does not leak. Where the program itself did little there, as one that gets no CPU, less growth will do: half of
// what the bytes that it allocated let expect, if it goes on.
func (h *detector) lately(s *history.Series, t, low []float64) bool {
	n := len(t)
	third := t[0] + (t[n-1]-t[0])*2/3
	i, _ := slices.BinarySearch(t, third)
	grown := (low[n-1] - low[min(i, n-1)]) / (low[n-1] - low[0])
	if grown >= 0.1 {
		return true
	}
	begin, end := h.AllocatedAt(t[0]), h.AllocatedAt(t[n-1])
	share := (end - h.AllocatedAt(third)) / max(end-begin, 1)
	return grown > 0 && grown >= share/2 && s.Last >= t[n-1]-(t[n-1]-t[0])/growthParts
}

// clockTime is the clock of silent that is time itself.
func (h *detector) clockTime(t float64) float64 { return t }

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
	growing, before := 0, low[0]
	var last [growthParts]float64
	for i := range growthParts {
		x := interpolate(t, low, from+(to-from)*float64(i+1)/growthParts)
		last[i] = (x - before) / grown
		if last[i] >= 0.2/growthParts {
			growing++
		}
		before = x
	}
	late := last[growthParts-1] + last[growthParts-2]
	return growing >= growthParts*2/3 && slices.Max(last[:]) <= maxStepShare && late >= lateRate/3
}

// interpolate gives a series at a time between two points.
func interpolate(t, v []float64, x float64) float64 {
	i, _ := slices.BinarySearch(t, x)
	switch {
	case i == 0:
		return v[0]
	case i >= len(t):
		return v[len(v)-1]
	case t[i] == t[i-1]:
		return v[i]
	}
	return v[i-1] + (v[i]-v[i-1])*(x-t[i-1])/(t[i]-t[i-1])
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
