package governor

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// SamplingConfig is what the sampling of one JVM may cost and shall give.
type SamplingConfig struct {
	Interval uint64  // bytes; where it begins and, without Live, the shortest
	Share    float64 // what sampling callbacks of all threads may take, of wall time; 0: any
	Live     uint64  // how many live samples are wanted; 0: as many as Interval gives
	// Least is the shortest interval, bytes, that is taken without Live while there is room for it; 0: Interval. Below
	// Interval it is taken only while the probe in all needs far less than Total of wall time (0: no limit), since more
	// samples must never cost the depth, and while there are few live samples.
	Least uint64
	Total float64
}

const (
	// window is over what time the cost of sampling is averaged.
	window = 5 * time.Second
	// leastInterval is the shortest interval that a wish for more live samples leads to, bytes.
	leastInterval = 4 << 10
	// afterFewer is how long it is waited for what fewer or more samples do to the number of live ones.
	afterFewer = 10 * time.Second
	// mostLive is how many live samples an interval below SamplingConfig.Interval may give: each is a weak reference,
	// which every collection looks at, and the probe has room for 65,536.
	mostLive = 16 << 10
	// overflow is how many samples must have been dropped, and more than one in overflowPart of those that were taken,
	// for an interval below minInterval to be given up.
	overflow, overflowPart = 1 << 12, 20
	// remembered is after what time half of a peak of the allocation rate is forgotten: what was allocated lately is
	// allocated again, and at a short interval costs much before anybody sees it.
	remembered = 5 * time.Minute
)

// Sampling lengthens the sampling interval at once when sampling costs more than its share or gives more live samples
// than wanted, and shortens it, later each time that was in vain, when there is room for it. Intervals are
// SamplingConfig.Interval times or over a power of two. Estimates stay unbiased, since a sample's weight is that of the
// interval in force when it was drawn. Not safe for concurrent use.
type Sampling struct {
	cfg       SamplingConfig
	interval  uint64
	from      time.Time // of the window
	sample    uint64    // ns, at its beginning
	probe     uint64    // likewise, of all that the probe does in pauses
	taken     uint64    // likewise, samples
	dropped   uint64    // likewise, those that were dropped
	peak      float64   // share × interval of lately: what an interval of 1 byte would take of the time
	changed   time.Time
	shortened bool // the last change
	calm      time.Duration
}

// NewSampling begins at the interval that was asked for.
func NewSampling(cfg SamplingConfig) *Sampling {
	return &Sampling{cfg: cfg, interval: cfg.Interval, calm: CalmFirst}
}

// SetBudget makes SamplingConfig.Share, Live and Total what they say.
func (s *Sampling) SetBudget(share float64, live uint64, total float64) {
	s.cfg.Share, s.cfg.Live, s.cfg.Total, s.calm = share, live, total, CalmFirst
}

// Spent is the time that the probe has taken since it began, ns.
type Spent struct {
	Sample uint64 // in sampling callbacks, all threads
	Probe  uint64 // in pauses
	// Taken and Dropped count the samples that were taken, and those of them for which the probe had no room.
	Taken, Dropped uint64
	// Full says that the probe's table of sites was full: classes come and go, and each new one that is sampled takes
	// memory of the JVM that it never gives back. Then no interval below Interval is taken.
	Full bool
}

// Observe takes note of the time, of what was spent, and of the number of live samples, 0 if it is not known. inForce
// is the interval that samples are drawn by now, as far as known, else 0.
func (s *Sampling) Observe(now time.Time, spent Spent, live, inForce uint64) (interval uint64, why string,
	change bool) {
	dt, sample := now.Sub(s.from), spent.Sample
	if lost := s.overflows(now, spent); lost > 0 {
		s.cfg.Interval = minInterval
		s.set(now, minInterval, false)
		return s.interval, fmt.Sprintf("the probe had no room for %d samples", lost), true
	}
	if !s.from.IsZero() && dt < window && sample >= s.sample && !s.burst(sample, dt) {
		return 0, "", false
	}
	share := float64(sample-s.sample) / float64(dt)
	all := share + float64(spent.Probe-s.probe)/float64(dt)
	first := s.from.IsZero() || sample < s.sample || spent.Probe < s.probe // of this probe
	s.from, s.sample, s.probe = now, sample, spent.Probe
	s.taken, s.dropped = spent.Taken, spent.Dropped
	if first && inForce != 0 { // as an earlier agent left it
		s.interval = inForce
	}
	if !first {
		s.peak *= math.Exp2(-float64(dt) / float64(remembered))
		s.peak = max(s.peak, share*float64(cmp.Or(inForce, s.interval)))
	}
	// draws made before the last change are still to come
	if first || inForce != s.interval && now.Sub(s.changed) < window {
		return 0, "", false
	}
	cost := share
	if s.cfg.Share > 0 {
		cost /= s.cfg.Share
	}
	many := 0.0
	if s.cfg.Live > 0 && live > 0 {
		many = float64(live) / float64(s.cfg.Live)
	}
	switch {
	case s.cfg.Share > 0 && cost > 1.1 && s.interval < maxInterval:
		s.set(now, s.interval<<max(1, int(math.Round(math.Log2(cost)))), false)
		return s.interval, fmt.Sprintf("sampling took %.2g %% of the time; its budget is %.3g %%", 100*share,
			100*s.cfg.Share), true
	case many > 1.5 && now.Sub(s.changed) > afterFewer && s.interval < maxInterval:
		s.set(now, 2*s.interval, false)
		return s.interval, fmt.Sprintf("%d live samples; the target is %d", live, s.cfg.Live), true
	case s.interval < s.cfg.Interval && s.cfg.Live == 0 && s.cfg.Total > 0 && all > 0.9*s.cfg.Total:
		s.set(now, s.cfg.Interval, false)
		return s.interval, fmt.Sprintf("heapcam took %.2g %% of the time; its budget is %.3g %%", 100*all,
			100*s.cfg.Total), true
	case s.interval < s.cfg.Interval && s.cfg.Live == 0 && spent.Full:
		s.set(now, s.cfg.Interval, false)
		return s.interval, "the table of allocation sites is full", true
	case s.interval < s.cfg.Interval && s.cfg.Live == 0 && live > 2*mostLive && now.Sub(s.changed) > afterFewer:
		s.set(now, 2*s.interval, false)
		return s.interval, fmt.Sprintf("%d live samples", live), true
	// halving it doubles the cost, and some room shall be left
	case s.cfg.Share > 0 && cost > 0.35 || now.Sub(s.changed) < s.calm:
		return 0, "", false
	case s.cfg.Live == 0 && s.interval > s.cfg.Interval:
		next := max(s.interval/2, s.cfg.Interval)
		for ; cost > 0 && 4*cost < 0.7 && next > s.cfg.Interval; cost *= 2 {
			next = max(next/2, s.cfg.Interval)
		}
		if s.cfg.Interval < minInterval && next <= minInterval {
			next = s.cfg.Interval
		}
		s.set(now, next, true)
		return s.interval, "there is room in the budget", true
	case !spent.Full && s.mayShorten(share, all, live):
		s.set(now, s.shorter(live), true)
		return s.interval, "there is room in the budget", true
	case many > 0 && many < 0.5 && s.interval > leastInterval:
		s.set(now, s.interval/2, true)
		return s.interval, fmt.Sprintf("%d live samples; the target is %d", live, s.cfg.Live), true
	}
	return 0, "", false
}

// overflows gives how many samples were dropped since the last window, if they are many and the interval is below
// minInterval. What is dropped is the end of what was allocated before a collection, or all of it once live samples
// fill the room: a leak would seem to end. Fewer samples that stand for more show it. 0: not so.
func (s *Sampling) overflows(now time.Time, spent Spent) uint64 {
	if s.from.IsZero() || s.interval >= minInterval || spent.Taken < s.taken || spent.Dropped < s.dropped {
		return 0
	}
	taken, dropped := spent.Taken-s.taken, spent.Dropped-s.dropped
	if dropped < overflow || dropped < taken/overflowPart {
		return 0
	}
	s.from, s.sample, s.probe, s.taken, s.dropped = now, spent.Sample, spent.Probe, spent.Taken, spent.Dropped
	return dropped
}

// burst says that sampling below Interval has taken already what it may take in a whole window.
func (s *Sampling) burst(sample uint64, dt time.Duration) bool {
	return s.interval < s.cfg.Interval && s.cfg.Share > 0 && dt > window/10 &&
		float64(sample-s.sample) > s.cfg.Share*float64(window)
}

// mayShorten says whether an interval below Interval may be tried.
func (s *Sampling) mayShorten(share, all float64, live uint64) bool {
	c := &s.cfg
	return c.Live == 0 && c.Least != 0 && c.Share > 0 && s.interval > c.Least && s.interval <= c.Interval &&
		(c.Total == 0 || all+share < 0.6*c.Total) && s.shorter(live) < s.interval
}

// shorter gives the shortest interval that recent allocation rates and the number of live samples leave room for.
func (s *Sampling) shorter(live uint64) uint64 {
	next := s.interval
	for n := live; next/2 >= s.cfg.Least && s.peak/float64(next/2) < 0.7*s.cfg.Share && 2*n <= mostLive; n *= 2 {
		next /= 2
	}
	return next
}

func (s *Sampling) set(now time.Time, interval uint64, shorter bool) {
	switch {
	case !shorter && s.shortened && now.Sub(s.changed) < Regret:
		s.calm = min(2*s.calm, CalmMost)
	case now.Sub(s.changed) > CalmMost:
		s.calm = CalmFirst
	}
	if !shorter {
		interval = max(interval, minInterval)
	}
	s.interval = min(interval, maxInterval)
	s.changed, s.shortened = now, shorter
}
