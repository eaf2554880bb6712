// Package governor keeps what a probe costs its JVM within a budget, by its own clock: it lowers the depth (full, survivors, samples) and then
// lengthens the sampling interval when the budget is spent, and goes back when there is room, later each time that was in vain.
//
// Terms. *Cost* is the probe's time inside pauses and in sampling callbacks. The *budget* is a share of wall time; what is not spent is saved
// up for Slack. *Up* is towards what was asked for, *down* away from it.
//
// What it does not do: read rings, know clocks (the caller gives the time), tell costs of sync points from those of epochs: going up costs one
// and is charged.
package governor

import (
	"fmt"
	"math"
	"time"

	"github.com/heapcam/heapcam/trace"
)

const (
	// Slack is how long an unspent budget is saved up: with what a change takes to show, a stretch of 10 s may cost a fifth more than its share.
	Slack = time.Second
	// CalmFirst is how long it must have been calm before it goes up; doubled, up to CalmMost, each time the way up is taken back within Regret.
	CalmFirst = 10 * time.Second
	CalmMost  = 5 * time.Minute
	Regret    = 30 * time.Second
	// Span is the stretch over which the budget is to hold, as near as one epoch lets it. What half of a span's budget does not pay for at one look is not
	// gone up to again until that is forgotten: by half in each Forget.
	Span   = 10 * time.Second
	Forget = 5 * time.Minute
	// kept is what of the budget is given out: the rest is for what comes before it can be answered.
	kept = 0.9
	// settle is how long a change is waited for before the next one down.
	settle = time.Second
	// maxInterval is the longest sampling interval, bytes; an interval of 0, every allocation, is lengthened to minInterval first.
	maxInterval = 256 << 20
	minInterval = 64 << 10
	// maxSteps is how often it is doubled at a time.
	maxSteps = 8
)

// Config is what was asked for and what it may cost.
type Config struct {
	Share    float64       // of wall time, above 0
	Pause    time.Duration // what an ordinary epoch may add to a pause; 0: any
	Depth    uint64        // trace.Depth…
	Interval uint64        // bytes
}

// Look is what is seen of a probe.
type Look struct {
	Now    time.Time
	Probe  uint64        // ns inside pauses since the probe began
	Sample uint64        // ns in sampling callbacks since then
	Pause  time.Duration // the longest that an ordinary epoch added since the last look
	Depth  uint64        // that epochs are recorded at now
}

// Change is what is wanted from now on, and why.
type Change struct {
	Depth, Interval uint64
	Why             string
}

// Governor governs one JVM. Not safe for concurrent use.
type Governor struct {
	cfg             Config
	depth, interval uint64 // wanted now
	last            Look
	saved           time.Duration // negative: overspent
	samples         float64       // share of the cost that sampling was, of late
	now, sampling   float64       // what everything and what sampling costs now, shares of wall time over the last second
	changed, upAt   time.Time
	calmSince       time.Time
	calm            time.Duration
	dear            [trace.DepthFull + 1]time.Duration // the most that a look at a depth has cost, fading
}

// New begins with what was asked for.
func New(cfg Config) *Governor {
	return &Governor{cfg: cfg, depth: cfg.Depth, interval: cfg.Interval, calm: CalmFirst}
}

// Look takes note of what is seen and says whether something else is wanted.
func (g *Governor) Look(l Look) (Change, bool) {
	was := g.last
	g.last = l
	if was.Now.IsZero() || l.Probe < was.Probe || l.Sample < was.Sample { // the first, or another probe
		g.calmSince = l.Now
		return Change{}, false
	}
	dt := l.Now.Sub(was.Now)
	probe, sample := time.Duration(l.Probe-was.Probe), time.Duration(l.Sample-was.Sample)
	most := time.Duration(g.cfg.Share * float64(Slack))
	g.saved = min(g.saved+time.Duration(kept*g.cfg.Share*float64(dt))-probe-sample, most)
	for d := range g.dear {
		g.dear[d] -= time.Duration(float64(g.dear[d]) * min(1, 0.69*float64(dt)/float64(Forget)))
	}
	if d := max(was.Depth, l.Depth); d < uint64(len(g.dear)) {
		g.dear[d] = max(g.dear[d], probe)
	}
	recent := min(1, float64(dt)/float64(settle))
	g.now += recent * (float64(probe+sample)/float64(max(dt, 1)) - g.now)
	g.sampling += recent * (float64(sample)/float64(max(dt, 1)) - g.sampling)
	if c := probe + sample; c > 0 {
		w := min(1, float64(c)/float64(most))
		g.samples += w * (float64(sample)/float64(c) - g.samples)
	}
	long := g.cfg.Pause > 0 && l.Pause > g.cfg.Pause && g.depth > trace.DepthSamples
	if g.saved >= 0 && !long {
		return g.up(l)
	}
	g.calmSince = l.Now
	if !long && g.saved < -g.half()/2 && g.depth > trace.DepthSamples && g.samples < 0.5 { // a quarter of a span's budget was overspent: no step is waited for
		g.depth, g.changed = trace.DepthSamples, l.Now
		if g.sampling > g.cfg.Share/2 {
			g.lengthen()
		}
		if !g.upAt.IsZero() && l.Now.Sub(g.upAt) < Regret {
			g.calm = min(2*g.calm, CalmMost)
		}
		return Change{g.depth, g.interval, fmt.Sprintf("the budget of %.3g %% is spent for %v ahead", 100*g.cfg.Share, time.Duration(float64(-g.saved)/g.cfg.Share).Round(time.Second))}, true
	}
	if l.Now.Sub(g.changed) < settle || l.Depth > g.depth && l.Now.Sub(g.changed) < 10*settle {
		return Change{}, false // the last change has not shown what it does
	}
	if !long && g.now < g.cfg.Share/2 {
		return Change{}, false // what was overspent is being paid back
	}
	why := fmt.Sprintf("the budget of %.3g %% is spent", 100*g.cfg.Share)
	if long {
		why = fmt.Sprintf("an epoch added %v to a pause, the budget is %v", l.Pause.Round(100*time.Microsecond), g.cfg.Pause)
	}
	return g.down(l.Now, why, !long)
}

func (g *Governor) down(now time.Time, why string, sampling bool) (Change, bool) {
	switch {
	case sampling && g.interval < maxInterval && (g.samples > 0.5 || g.depth == trace.DepthSamples):
		g.lengthen()
	case g.depth > trace.DepthSamples:
		g.depth--
	default:
		return Change{}, false // the floor
	}
	g.changed = now
	if !g.upAt.IsZero() && now.Sub(g.upAt) < Regret {
		g.calm = min(2*g.calm, CalmMost)
	}
	return Change{g.depth, g.interval, why}, true
}

// half is what half of a span may cost.
func (g *Governor) half() time.Duration { return time.Duration(g.cfg.Share * float64(Span) / 2) }

// lengthen makes the sampling interval longer, at once to where sampling costs half of the budget.
func (g *Governor) lengthen() {
	n := 1
	if rate := g.sampling / g.cfg.Share; rate > 1 {
		n = min(1+int(math.Ceil(math.Log2(rate))), maxSteps)
	}
	g.interval = min(max(g.interval<<n, minInterval), maxInterval)
}

func (g *Governor) up(l Look) (Change, bool) {
	now := l.Now
	if g.depth == g.cfg.Depth && g.interval == g.cfg.Interval {
		if now.Sub(g.changed) > CalmMost {
			g.calm = CalmFirst
		}
		return Change{}, false
	}
	if now.Sub(g.calmSince) < g.calm || now.Sub(g.changed) < g.calm {
		return Change{}, false
	}
	if g.depth < g.cfg.Depth && g.dear[g.depth+1] <= g.half() {
		g.depth++
	} else if g.interval == g.cfg.Interval {
		return Change{}, false
	} else {
		g.interval = max(g.interval/2, g.cfg.Interval)
		if g.cfg.Interval < minInterval && g.interval <= minInterval {
			g.interval = g.cfg.Interval
		}
	}
	g.changed, g.upAt, g.calmSince = now, now, now
	return Change{g.depth, g.interval, "there is room in the budget"}, true
}
