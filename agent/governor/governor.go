// Package governor keeps the cost of a probe, measured by the probe's own clock, within a budget. When the budget is
// spent it lowers the depth (full, survivors, samples), and then lengthens the sampling interval. When there is room it
// takes that back. Each time it did so too early it waits longer before the next attempt.
//
// A single epoch may cost more than is left, before the governor can react. So the probe is told what the next epoch
// may cost (Room), and records it at a lower depth if it would take more. That counts as a change by the governor.
//
// Terms. *Cost* is the probe's time inside pauses and in sampling callbacks. The *budget* is a share of wall time; what
// is not spent is saved up for Slack. *Up* is towards the depth and interval that were configured, *down* away
// from them.
//
// What it does not do: read rings, know clocks (the caller gives the time), distinguish the costs of sync
// points from those of epochs: raising the depth needs a sync point, whose cost is charged.
package governor

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/heapcam/heapcam/trace"
)

const (
	// Slack is how long an unspent budget is saved up: with what a change takes to show, a stretch of 10 s may cost a
	// fifth more than its share.
	Slack = time.Second
	// CalmFirst is how long it must have been calm before it goes up; doubled, up to CalmMost, each time the way up is
	// taken back within Regret. While less than quiet of the budget is spent a quarter of that does, but not less than
	// CalmFirst.
	CalmFirst = 10 * time.Second
	CalmMost  = 5 * time.Minute
	Regret    = 10 * time.Second
	quiet     = 0.125
	// Span is the stretch over which the budget is to hold.
	Span = 10 * time.Second
	// kept is what of the budget is given out: the rest is for what comes before it can be answered.
	kept = 0.85
	// settle is how long a change is waited for before the next one down; heard, how long a longer interval takes to
	// show.
	settle = time.Second
	heard  = 250 * time.Millisecond
	// filled is what of a Span's budget an epoch may fill: its cost is a guess.
	filled = 0.9
	// worth is the share of the budget that sampling must take for a longer interval to be of use.
	worth = 0.125
	// maxInterval is the longest sampling interval, bytes; an interval of 0, every allocation, is lengthened to
	// minInterval first.
	maxInterval = 256 << 20
	minInterval = 64 << 10
	// maxSteps is how often it is doubled at a time, maxShorter how often halved.
	maxSteps   = 8
	maxShorter = 3
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
	Cuts   uint64        // epochs that the probe recorded at a lower depth by itself, since it began
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
	// what everything costs now, over the last second, and sampling, over the last quarter of one; shares of wall time
	now, sampling float64
	changed, upAt time.Time
	longer        time.Time // when the interval was lengthened last
	looks         []point   // of the last Span, oldest first
	calmSince     time.Time
	calm          time.Duration
	vain          bool // the last way up was taken back: the other one is tried next
}

// point is what had been spent at a time.
type point struct {
	at   time.Time
	cost time.Duration
}

// New begins with what was asked for.
func New(cfg Config) *Governor {
	return &Governor{cfg: cfg, depth: cfg.Depth, interval: cfg.Interval, calm: CalmFirst}
}

// SetBudget makes the budget what it says, share above 0; depth and interval follow by what is seen from then on.
func (g *Governor) SetBudget(share float64, pause time.Duration) {
	g.cfg.Share, g.cfg.Pause = share, pause
	g.saved = min(g.saved, time.Duration(share*float64(Slack)))
	g.calm, g.vain, g.upAt = CalmFirst, false, time.Time{} // what was in vain may fit now
}

// Look takes note of what is seen and says whether something else is wanted.
func (g *Governor) Look(l Look) (Change, bool) {
	was := g.last
	g.last = l
	// the first, or another probe
	if was.Now.IsZero() || l.Probe < was.Probe || l.Sample < was.Sample || l.Cuts < was.Cuts {
		g.calmSince, g.looks = l.Now, nil
		if l.Depth >= trace.DepthSamples && l.Depth < g.depth { // a probe that cut it keeps it until that is asked for
			g.depth, g.changed = l.Depth, l.Now
			return Change{g.depth, g.interval, "the probe had lowered it"}, true
		}
		return Change{}, false
	}
	dt := l.Now.Sub(was.Now)
	probe, sample := time.Duration(l.Probe-was.Probe), time.Duration(l.Sample-was.Sample)
	g.spend(l)
	most := time.Duration(g.cfg.Share * float64(Slack))
	g.saved = min(g.saved+time.Duration(kept*g.cfg.Share*float64(dt))-probe-sample, most)
	g.now += min(1, float64(dt)/float64(settle)) * (float64(probe+sample)/float64(max(dt, 1)) - g.now)
	g.sampling += min(1, float64(dt)/float64(heard)) * (float64(sample)/float64(max(dt, 1)) - g.sampling)
	if c := probe + sample; c > 0 {
		w := min(1, float64(c)/float64(most))
		g.samples += w * (float64(sample)/float64(c) - g.samples)
	}
	if l.Cuts > was.Cuts && l.Depth >= trace.DepthSamples && l.Depth < g.depth {
		g.depth, g.calmSince = l.Depth, l.Now
		return g.lowered(l.Now, fmt.Sprintf("recording a collection would have exceeded the overhead budget of %.3g %%",
			100*g.cfg.Share))
	}
	long := g.cfg.Pause > 0 && l.Pause > g.cfg.Pause && g.depth > trace.DepthSamples
	// by itself more than everything may
	if g.sampling > g.cfg.Share && g.interval < maxInterval && l.Now.Sub(g.longer) > heard {
		g.calmSince = l.Now
		g.lengthen(l.Now)
		return g.lowered(l.Now, fmt.Sprintf("sampling alone exceeds the overhead budget of %.3g %%", 100*g.cfg.Share))
	}
	if g.saved >= 0 && !long {
		return g.up(l)
	}
	g.calmSince = l.Now
	// a quarter of a span's budget was overspent: no step is waited for
	if !long && g.saved < -g.half()/2 && g.depth > trace.DepthSamples && g.samples < 0.5 {
		g.depth = trace.DepthSamples
		if g.sampling > g.cfg.Share/2 {
			g.lengthen(l.Now)
		}
		return g.lowered(l.Now, fmt.Sprintf("the overhead budget of %.3g %% is used up for the next %v",
			100*g.cfg.Share, time.Duration(float64(-g.saved)/g.cfg.Share).Round(time.Second)))
	}
	if l.Now.Sub(g.changed) < settle || l.Depth > g.depth && l.Now.Sub(g.changed) < 10*settle {
		return Change{}, false // the last change has not shown what it does
	}
	if !long && g.now < g.cfg.Share/2 {
		return Change{}, false // what was overspent is being paid back
	}
	why := fmt.Sprintf("the overhead budget of %.3g %% is used up", 100*g.cfg.Share)
	if long {
		why = fmt.Sprintf("recording a collection added %v to a pause; overhead_pause is %v",
			l.Pause.Round(100*time.Microsecond), g.cfg.Pause)
	}
	return g.down(l.Now, why, !long)
}

// Room is what the next epoch may cost, above 0: what the last Span has left of its budget, nearly.
func (g *Governor) Room() time.Duration {
	return max(time.Duration(filled*g.cfg.Share*float64(Span))-g.spent(), 1)
}

// spent is what the last Span cost.
func (g *Governor) spent() time.Duration {
	if len(g.looks) == 0 {
		return 0
	}
	return g.looks[len(g.looks)-1].cost - g.looks[0].cost
}

// spend notes what has been spent; what stands there longer than Span, but for the last before it, is dropped.
func (g *Governor) spend(l Look) {
	g.looks = append(g.looks, point{l.Now, time.Duration(l.Probe + l.Sample)})
	n := 0
	for n+1 < len(g.looks) && l.Now.Sub(g.looks[n+1].at) >= Span {
		n++
	}
	g.looks = slices.Delete(g.looks, 0, n)
}

func (g *Governor) down(now time.Time, why string, sampling bool) (Change, bool) {
	switch {
	case sampling && g.interval < maxInterval && g.sampling > worth*g.cfg.Share &&
		(g.samples > 0.5 || g.depth == trace.DepthSamples):
		g.lengthen(now)
	case g.depth > trace.DepthSamples:
		g.depth--
	default:
		return Change{}, false // the floor
	}
	return g.lowered(now, why)
}

// lowered gives the change that was just made; one that takes back a way up makes the next wait longer, once however
// many steps down follow.
func (g *Governor) lowered(now time.Time, why string) (Change, bool) {
	g.changed = now
	if !g.upAt.IsZero() && now.Sub(g.upAt) < Regret {
		g.calm, g.vain, g.upAt = min(2*g.calm, CalmMost), true, time.Time{}
	}
	return Change{g.depth, g.interval, why}, true
}

// half is what half of a span may cost.
func (g *Governor) half() time.Duration { return time.Duration(g.cfg.Share * float64(Span) / 2) }

// lengthen makes the sampling interval longer, at once to where sampling costs half of the budget.
func (g *Governor) lengthen(now time.Time) {
	n := 1
	if rate := g.sampling / g.cfg.Share; rate > 1 {
		n = min(1+int(math.Ceil(math.Log2(rate))), maxSteps)
	}
	g.interval = min(max(g.interval<<n, minInterval), maxInterval)
	g.sampling /= float64(uint64(1) << n) // what it will be
	g.longer = now
}

func (g *Governor) up(l Look) (Change, bool) {
	now := l.Now
	if g.depth == g.cfg.Depth && g.interval == g.cfg.Interval {
		if now.Sub(g.changed) > CalmMost {
			g.calm = CalmFirst
		}
		return Change{}, false
	}
	calm := g.calm
	if float64(g.spent()) < quiet*g.cfg.Share*float64(Span) {
		calm = max(calm/4, CalmFirst)
	}
	if now.Sub(g.calmSince) < calm || now.Sub(g.changed) < calm {
		return Change{}, false
	}
	if g.interval == g.cfg.Interval || g.depth < g.cfg.Depth && !g.vain {
		g.depth++
	} else {
		n := 1
		for s := 4 * g.sampling; n < maxShorter && s < worth*g.cfg.Share; s *= 2 {
			n++ // it would still be of no account
		}
		g.interval = max(g.interval>>n, g.cfg.Interval)
		if g.cfg.Interval < minInterval && g.interval <= minInterval {
			g.interval = g.cfg.Interval
		}
	}
	g.vain = false
	g.changed, g.upAt, g.calmSince = now, now, now
	return Change{g.depth, g.interval, "there is room in the budget"}, true
}
