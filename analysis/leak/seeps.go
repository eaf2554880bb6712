package leak

import (
	"math"

	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/stats"
)

const (
	seepFloors = 6   // collections of old space that show it at least
	seepRamp   = 0.4 // share of the window up to the first of them, at most
	staysYoung = 4   // divides the time: what is younger than a part may be in use
	staysLeast = 24  // samples that stay, as of the smallest leak that would be found
	staysEven  = 2   // times as often as on average what a third of the time allocated lives, or as rarely, at most
)

// seeps looks for a leak of few objects of a site whose others die after a while, as sessions of which one in ten is
// never closed. Such a site first grows fast, up to what is in use at a time, so that its growth seems to slow down.
// From then on collections of old space leave steadily more. The old objects that live tell it from a load that rises:
// of each third of the time as large a share lives. That most of them are dead tells it from a cache that fills up,
// which grows fast at first, too, but keeps what it has. Then g says so.
func (h *detector) seeps(g *growth, s *history.Series, c *curve) {
	floors, end := c.floors, c.t[len(c.t)-1]
	for len(floors) > 0 && c.t[floors[0]] < h.From+(end-h.From)/growthParts {
		floors = floors[1:]
	}
	n := len(floors)
	if n < seepFloors || c.t[floors[0]] > h.From+seepRamp*(end-h.From) {
		return
	}
	old := h.ages(s, c.t[floors[n-1]])
	if turned, known := old.turnover(); turned || !known || old.alive[0] >= asMany*old.taken[0] || h.keepsAge(s) {
		return
	}
	first, last := floors[0], floors[n-1]
	mid := first
	for _, f := range floors {
		if far := func(f int) float64 { return math.Abs(c.t[f] - (c.t[first]+c.t[last])/2) }; far(f) < far(mid) {
			mid = f
		}
	}
	was, now := c.samples[mid]-c.samples[first], c.samples[last]-c.samples[mid]
	span := c.t[last] - c.t[first]
	if span < (end-h.From)/2 || was <= 0 || now/(c.t[last]-c.t[mid]) < steady*was/(c.t[mid]-c.t[first]) {
		return
	}
	p := fewPoints * gained([]float64{c.samples[first], c.samples[last]})
	if p > significance {
		return
	}
	g.p, g.test, g.why, g.refuted = p, "what collections of old space left", whyNot, false
	g.settled, g.seeps, g.once, g.floors = true, true, false, n
	g.grown = c.v[last] - c.v[first]
	g.slope = g.grown / span
	g.onset = [2]float64{c.t[0], c.t[first]}
	g.bySamples(was + now)
}

// stays looks for the same in what lives at the newest floor alone. What is in use varies from floor to floor, and
// hides what piles up. But of what is older than a quarter of the time only that is left: of each third of the time
// before, as large a share lives, and most has died. Of what had a limit, the oldest would be gone. Then g says so: a
// leak where there were many floors, and it is hardly chance, else a suspect.
func (h *detector) stays(g *growth, s *history.Series, c *curve) {
	n := len(c.floors)
	if n < 2 || s.Taken == 0 {
		return
	}
	last, from := c.t[c.floors[n-1]], h.beginOf(s)
	if last-c.t[c.floors[0]] < (last-from)/4 || h.To-last > (h.To-h.From)/growthParts || h.keepsAge(s) {
		return
	}
	until := last - (last-from)/staysYoung
	old := h.ages(s, until)
	taken, alive := 0.0, 0.0
	for k := range old.taken {
		taken, alive = taken+old.taken[k], alive+old.alive[k]
	}
	if alive < staysLeast || alive >= asMany*taken {
		return
	}
	for k := range old.taken {
		if even := alive / taken * old.taken[k]; old.alive[k] < even/staysEven || old.alive[k] > even*staysEven {
			return
		}
	}
	early, late := old.taken[0]+old.taken[1]/2, old.taken[1]/2+old.taken[2]
	kept := old.alive[0] + old.alive[1]/2
	p := stats.BinomialAtMost(early, early-kept, 1-asMany*(alive-kept)/late)
	if p > significance {
		return
	}
	sure := n >= seepFloors && fewPoints*p <= significance
	g.p, g.test, g.why, g.refuted = p, "ages of live objects", whyNot, false
	g.settled, g.seeps, g.once, g.floors = sure, sure, !sure, n
	g.grown = alive * s.Allocated / s.Taken
	g.slope = g.grown / (until - from)
	g.onset = [2]float64{from, from + (until-from)/growthParts}
	g.bySamples(alive)
}
