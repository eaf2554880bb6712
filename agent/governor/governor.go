// Package governor keeps the overhead of a probe within a budget. The probe measures its cost by its own clock.
//
// When the budget is used up, the governor lowers the depth (full, survivors, samples), then lengthens the sampling
// interval. When there is room, it raises both again. After each raise that was too early it waits longer.
//
// One epoch may cost more than the rest of the budget, before the governor can react. So the agent passes Room, the
// cost that the next epoch may have, to the probe. The probe records a more expensive epoch at a lower depth. That
// counts as a change by the governor.
//
// Terms. *Cost* is the probe's time inside pauses and in sampling callbacks. The *budget* is a share of wall time; an
// unspent part is saved for Slack. To *raise* is to go towards the configured depth and interval, to *lower* is to go
// away from them.
//
// What it does not do: it reads no rings and no clocks (the caller passes the time). It does not separate the costs of
// sync points from those of epochs: raising the depth needs a sync point, whose cost counts.
package governor

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

const (
	// Slack is how long an unspent budget is saved up. With kept, a stretch of Span costs at most its share.
	Slack = 8 * time.Second
	// CalmFirst is how long the cost must stay below the budget before depth or interval is raised. It doubles, up to
	// CalmMost, each time a raise is undone within Regret. While less than quiet of the budget is spent, a quarter of
	// it is enough, but at least CalmFirst.
	CalmFirst = 10 * time.Second
	CalmMost  = 5 * time.Minute
	Regret    = 10 * time.Second
	quiet     = 0.125
	// IdleMost is the longest wait of a JVM that has been idle that long.
	IdleMost = 40 * time.Second
	// Span is the stretch over which the budget is to hold.
	Span = time.Minute
	// repaid is how often the budget of the stay at a greater depth, as predicted, must hold the listing that leads
	// there. room is the part of the budget that the depth may be predicted to take.
	repaid = 10
	room   = 0.8
	// kept is the share of the budget that is spent on purpose. The rest covers costs before a change takes effect.
	kept = 0.85
	// settle is the time between a change and the next lowering; heard is how long a longer interval takes to show.
	settle = time.Second
	heard  = 250 * time.Millisecond
	// filled is the share of a Span's budget that one epoch may use: its cost is an estimate.
	filled = 0.9
	// lately is the time over which one long epoch differs from a load that lasts.
	lately = 10 * time.Second
	// worth is the share of the budget that sampling must take for a longer interval to be of use.
	worth = 0.125
	// maxInterval is the longest sampling interval, bytes; an interval of 0, every allocation, is lengthened to
	// minInterval first.
	maxInterval = 256 << 20
	minInterval = trace.MinInterval
	// maxSteps is how often the interval is doubled at a time, maxShorter how often it is halved.
	maxSteps   = 8
	maxShorter = 3
)

// Config is the configured depth and interval, and their budget.
type Config struct {
	Share    float64       // of wall time, above 0
	Pause    time.Duration // what an ordinary epoch may add to a pause; 0: any
	Depth    uint64        // trace.Depth…
	Interval uint64        // bytes
}

// Observation is the state of a probe at one time.
type Observation struct {
	Now    time.Time
	Probe  uint64        // ns inside pauses since the probe began
	Sample uint64        // ns in sampling callbacks since then
	Pause  time.Duration // the longest that an ordinary epoch added since the observation before
	Depth  uint64        // that epochs are recorded at now
	Cuts   uint64        // epochs that the probe recorded at a lower depth by itself, since it began
	// Walk is what the walks of all epochs were expected to take at each depth, ns since the probe began; of
	// trace.DepthFull 0: the probe does not tell. Listing is what listing the heap would take, ns.
	Walk    [trace.DepthFull + 1]uint64
	Listing uint64
	// References is what reference listings took that the budget is to count, ns: the rest of a Span has less room.
	References uint64
	Storm      bool // of full collections: the probe keeps a budget of its own, in place of this one
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
	last            Observation
	saved           time.Duration // negative: overspent
	excused         time.Duration // spent in storms
	samples         float64       // share of the cost that sampling was, of late
	// now: all costs of the last second; sampling: those of sampling in the last 250 ms; shares of wall time
	now, sampling     float64
	changed, raisedAt time.Time
	longer            time.Time // when the interval was lengthened last
	history           []point   // of the last Span, oldest first
	calmSince         time.Time
	calm              time.Duration
	raiseFailed       bool // the last raise was undone: the other kind is tried next
}

// point is what had been spent at a time.
type point struct {
	at   time.Time
	cost time.Duration
	walk [trace.DepthFull + 1]uint64
}

// New returns a Governor at the configured depth and interval.
func New(cfg Config) *Governor {
	return &Governor{cfg: cfg, depth: cfg.Depth, interval: cfg.Interval, calm: CalmFirst,
		saved: time.Duration(cfg.Share * float64(Slack))}
}

// SetBudget changes the budget; share is above 0. Depth and interval follow with the next observations.
func (g *Governor) SetBudget(share float64, pause time.Duration) {
	g.cfg.Share, g.cfg.Pause = share, pause
	g.saved = min(g.saved, time.Duration(share*float64(Slack)))
	g.calm, g.raiseFailed, g.raisedAt = CalmFirst, false, time.Time{} // what failed before may fit now
}

// Observe takes in an observation and returns a change, if one is wanted.
func (g *Governor) Observe(l Observation) (Change, bool) {
	was := g.last
	g.last = l
	// the first, or another probe
	if was.Now.IsZero() || l.Probe < was.Probe || l.Sample < was.Sample || l.Cuts < was.Cuts {
		g.calmSince, g.history, g.excused = l.Now, nil, 0
		// A probe that lowered its depth keeps it until it gets another one.
		if l.Depth >= trace.DepthSamples && l.Depth < g.depth {
			g.depth, g.changed = l.Depth, l.Now
			return Change{g.depth, g.interval, "the probe had lowered it"}, true
		}
		return Change{}, false
	}
	dt := l.Now.Sub(was.Now)
	probe, sample := time.Duration(l.Probe-was.Probe), time.Duration(l.Sample-was.Sample)
	if l.Storm {
		g.excused += probe
		probe = 0
	}
	g.spend(l)
	most := time.Duration(g.cfg.Share * float64(Slack))
	g.saved = min(g.saved+time.Duration(kept*g.cfg.Share*float64(dt))-probe-sample, most)
	g.now += min(1, float64(dt)/float64(settle)) * (float64(probe+sample)/float64(max(dt, 1)) - g.now)
	g.sampling += min(1, float64(dt)/float64(heard)) * (float64(sample)/float64(max(dt, 1)) - g.sampling)
	if c := probe + sample; c > 0 {
		w := min(1, float64(c)/float64(most))
		g.samples += w * (float64(sample)/float64(c) - g.samples)
	}
	if l.Storm {
		g.calmSince = l.Now
		if g.depth != trace.DepthSamples || g.cfg.Depth == trace.DepthSamples {
			return Change{}, false
		}
		g.depth, g.changed = trace.DepthSurvivors, l.Now
		return Change{g.depth, g.interval, "a storm of full collections has a budget of its own"}, true
	}
	if l.Cuts > was.Cuts && l.Depth >= trace.DepthSamples && l.Depth < g.depth {
		g.depth, g.calmSince = l.Depth, l.Now
		return g.lowered(l.Now, fmt.Sprintf("recording a collection would have exceeded the overhead budget of %.3g %%",
			100*g.cfg.Share))
	}
	long := g.cfg.Pause > 0 && l.Pause > g.cfg.Pause && g.depth > trace.DepthSamples
	// Sampling alone exceeds the budget, and what was saved does not last for a burst of it.
	if g.sampling > g.cfg.Share && g.saved < most/2 && g.interval < maxInterval && l.Now.Sub(g.longer) > heard {
		g.calmSince = l.Now
		g.lengthen(l.Now)
		return g.lowered(l.Now, fmt.Sprintf("sampling alone exceeds the overhead budget of %.3g %%", 100*g.cfg.Share))
	}
	if g.saved >= 0 && !long {
		return g.raise(l)
	}
	g.calmSince = l.Now
	// a quarter of a span's budget was overspent: lower at once
	if !long && g.saved < -g.half()/2 && g.depth > trace.DepthSamples && g.samples < 0.5 {
		g.depth = trace.DepthSamples
		if g.sampling > g.cfg.Share/2 {
			g.lengthen(l.Now)
		}
		return g.lowered(l.Now, fmt.Sprintf("the overhead budget of %.3g %% is used up for the next %s",
			100*g.cfg.Share, ui.About(time.Duration(float64(-g.saved)/g.cfg.Share))))
	}
	if l.Now.Sub(g.changed) < settle || l.Depth > g.depth && l.Now.Sub(g.changed) < 10*settle {
		return Change{}, false // the last change has not taken effect yet
	}
	// The overspent part is being made up for. One long epoch, on a busy machine, is no reason to give up the state of
	// the heap.
	if !long && (g.now < g.cfg.Share/2 || g.samples < 0.5 && g.once(l.Now)) {
		return Change{}, false
	}
	why := fmt.Sprintf("the overhead budget of %.3g %% is used up", 100*g.cfg.Share)
	if long {
		why = fmt.Sprintf("recording a collection added %s to a pause; overhead_pause is %s",
			ui.Duration(l.Pause), ui.Duration(g.cfg.Pause))
	}
	return g.lower(l.Now, why, !long)
}

// Room returns what the next epoch may cost, above 0: nearly the rest of the last Span's budget.
func (g *Governor) Room() time.Duration {
	return max(time.Duration(filled*g.cfg.Share*float64(Span))-g.spent(), 1)
}

// spent is what the last Span cost.
func (g *Governor) spent() time.Duration {
	if len(g.history) == 0 {
		return 0
	}
	return g.history[len(g.history)-1].cost - g.history[0].cost
}

// once says that one epoch took most of what was spent lately: without it, half of the budget would have been enough.
func (g *Governor) once(now time.Time) bool {
	sum, largest := time.Duration(0), time.Duration(0)
	for i := len(g.history) - 1; i > 0 && now.Sub(g.history[i-1].at) <= lately; i-- {
		step := g.history[i].cost - g.history[i-1].cost
		sum, largest = sum+step, max(largest, step)
	}
	return sum-largest < time.Duration(g.cfg.Share/2*float64(lately))
}

// spend notes the total cost so far. It keeps the points of the last Span and one before them.
func (g *Governor) spend(l Observation) {
	g.history = append(g.history, point{l.Now, time.Duration(l.Probe+l.Sample+l.References) - g.excused, l.Walk})
	n := 0
	for n+1 < len(g.history) && l.Now.Sub(g.history[n+1].at) >= Span {
		n++
	}
	g.history = slices.Delete(g.history, 0, n)
}

func (g *Governor) lower(now time.Time, why string, sampling bool) (Change, bool) {
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

// lowered returns the change that was just made. A change that undoes a raise doubles the wait before the next raise,
// once for each raise.
func (g *Governor) lowered(now time.Time, why string) (Change, bool) {
	g.changed = now
	if !g.raisedAt.IsZero() && now.Sub(g.raisedAt) < Regret {
		g.calm, g.raiseFailed, g.raisedAt = min(2*g.calm, CalmMost), true, time.Time{}
	}
	return Change{g.depth, g.interval, why}, true
}

// half is what half of a span may cost.
func (g *Governor) half() time.Duration { return time.Duration(g.cfg.Share * float64(Span) / 2) }

// lengthen lengthens the sampling interval in one step to where sampling costs half of the budget.
func (g *Governor) lengthen(now time.Time) {
	n := 1
	if rate := g.sampling / g.cfg.Share; rate > 1 {
		n = min(1+int(math.Ceil(math.Log2(rate))), maxSteps)
	}
	g.interval = min(max(g.interval<<n, minInterval), maxInterval)
	g.sampling /= float64(uint64(1) << n) // what it will be
	g.longer = now
}

func (g *Governor) raise(l Observation) (Change, bool) {
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
	if g.idle() {
		calm = min(calm, IdleMost)
	}
	if now.Sub(g.calmSince) < calm || now.Sub(g.changed) < calm {
		return Change{}, false
	}
	deeper := g.depth < g.cfg.Depth && g.pays(g.depth+1)
	switch {
	case deeper && (g.interval == g.cfg.Interval || !g.raiseFailed):
		g.depth++
	case g.interval == g.cfg.Interval:
		return Change{}, false
	default:
		n := 1
		for s := 4 * g.sampling; n < maxShorter && s < worth*g.cfg.Share; s *= 2 {
			n++ // its cost would still be negligible
		}
		g.interval = max(g.interval>>n, g.cfg.Interval)
		if g.cfg.Interval < minInterval && g.interval <= minInterval {
			g.interval = g.cfg.Interval
		}
	}
	g.raiseFailed = false
	g.changed, g.raisedAt, g.calmSince = now, now, now
	return Change{g.depth, g.interval, "there is room in the budget"}, true
}

// walked is what walking at a depth would have taken of wall time in the last Span, 0 to 1; known: the probe tells.
func (g *Governor) walked(depth uint64) (share float64, over time.Duration, known bool) {
	if len(g.history) < 2 {
		return 0, 0, false
	}
	first, last := &g.history[0], &g.history[len(g.history)-1]
	over = last.at.Sub(first.at)
	return float64(last.walk[depth]-first.walk[depth]) / float64(max(over, 1)), over, last.walk[trace.DepthFull] > 0
}

// idle says that the JVM has done so little, for IdleMost, that recording it as configured would cost next to nothing.
func (g *Governor) idle() bool {
	share, over, known := g.walked(g.cfg.Depth)
	return known && over >= IdleMost && share < quiet*g.cfg.Share && g.sampling < quiet*g.cfg.Share
}

// pays says whether going to a greater depth pays: as long as the stay there is expected to last, its budget holds the
// listing that leads there repaid times.
func (g *Governor) pays(depth uint64) bool {
	share, _, known := g.walked(depth)
	if !known {
		return true
	}
	over := share + g.sampling - room*kept*g.cfg.Share
	if over <= 0 {
		return true // it is expected to last
	}
	stay := float64(max(g.saved, 0)) / over // ns
	return stay >= float64(Regret) && stay*g.cfg.Share >= repaid*float64(g.last.Listing)
}
