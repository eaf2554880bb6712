package governor

import (
	"fmt"
	"math"
	"time"
)

// SamplingConfig is what the sampling of one JVM may cost and shall give.
type SamplingConfig struct {
	Interval uint64  // bytes; where it begins and, without Live, the shortest
	Share    float64 // what sampling callbacks of all threads may take, of wall time; 0: any
	Live     uint64  // how many live samples are wanted; 0: as many as Interval gives
}

const (
	// window is over what time the cost of sampling is averaged.
	window = 5 * time.Second
	// leastInterval is the shortest interval that a wish for more live samples leads to, bytes.
	leastInterval = 4 << 10
	// afterFewer is how long it is waited for what fewer or more samples do to the number of live ones.
	afterFewer = 10 * time.Second
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
	changed   time.Time
	shortened bool // the last change
	calm      time.Duration
}

// NewSampling begins at the interval that was asked for.
func NewSampling(cfg SamplingConfig) *Sampling {
	return &Sampling{cfg: cfg, interval: cfg.Interval, calm: CalmFirst}
}

// SetBudget makes SamplingConfig.Share and Live what they say.
func (s *Sampling) SetBudget(share float64, live uint64) {
	s.cfg.Share, s.cfg.Live, s.calm = share, live, CalmFirst
}

// Observe takes note of the time, of the time in sampling callbacks since the probe began, in ns, and of the number of
// live samples, 0 if it is not known. inForce is the interval that samples are drawn by now, as far as known, else 0.
func (s *Sampling) Observe(now time.Time, sample, live, inForce uint64) (interval uint64, why string, change bool) {
	dt := now.Sub(s.from)
	if !s.from.IsZero() && dt < window && sample >= s.sample {
		return 0, "", false
	}
	share := float64(sample-s.sample) / float64(dt)
	first := s.from.IsZero() || sample < s.sample // of this probe
	s.from, s.sample = now, sample
	if first && inForce != 0 { // as an earlier agent left it
		s.interval = inForce
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
	case many > 0 && many < 0.5 && s.interval > leastInterval:
		s.set(now, s.interval/2, true)
		return s.interval, fmt.Sprintf("%d live samples; the target is %d", live, s.cfg.Live), true
	}
	return 0, "", false
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
