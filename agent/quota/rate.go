package quota

import (
	"math"
	"time"

	"github.com/heapcam/heapcam/trace"
)

const (
	rateSpan   = 5 * time.Second
	rateCalm   = 12
	rateForget = 10 * time.Minute
	// ratePatience is the longest calm that is waited for.
	ratePatience = time.Hour
	// EaseLevels are the levels above the depths: compression as configured, faster, fastest.
	EaseLevels = 2
	maxLevel   = trace.DepthFull + EaseLevels
)

// RateLimit keeps what the recording of one JVM takes a second, of the disk or of the agent's CPU, within a limit
// of its own and within its part of a shared limit. It does so by lowering a level: the depth (full, survivors,
// samples) and, where the CPU is limited, above the depths how well is compressed.
//
// It averages over spans of time. After two spans in a row above the limit it lowers the level by one. After rateCalm
// spans below a quarter of the limit it raises the level by one, up to the configured one, unless the last peak at that
// level is above the limit. A remembered peak halves every rateForget. Raising costs a listing, so a level that was too
// much is tried again after ever longer times.
//
// The zero value limits nothing. Not safe for concurrent use.
type RateLimit struct {
	own    Limit         // PerSecond 0: no limit of its own
	shared *SharedRate   // nil: none
	span   time.Duration // 0: rateSpan
	asked  uint64        // the highest level seen
	want   uint64        // the level as lowered
	cause  Limit         // the limit when want was changed last

	from     time.Time
	taken    int64
	above    int // spans in a row above the limit
	below    int // spans in a row below a quarter of it
	patience int
	peak     [maxLevel + 1]float64 // the most that a span at each level took a second, fading
}

// Limit is a limit and the name of its setting.
type Limit struct {
	Key       string // of the configuration
	PerSecond int64  // bytes or CPU nanoseconds a second
}

// NewRateLimit makes a RateLimit without a limit, for the setting key.
func NewRateLimit(key string) RateLimit { return RateLimit{own: Limit{Key: key}} }

// NewCPULimit makes a RateLimit that has its part of shared alone. It begins at the level want of at most top.
func NewCPULimit(shared *SharedRate, top, want uint64) RateLimit {
	return RateLimit{shared: shared, span: cpuSpan, asked: top, want: want}
}

// SetLimits sets the recording's own limit, 0: none, and the one it shares, nil: none.
func (r *RateLimit) SetLimits(perSecond int64, shared *SharedRate) {
	r.own.PerSecond, r.shared = perSecond, shared
}

// Limited says whether there is any limit.
func (r *RateLimit) Limited() bool { return r.own.PerSecond != 0 || r.shared != nil }

// Level returns the level that is wanted, as of the last Observe.
func (r *RateLimit) Level() uint64 { return r.want }

// Cause returns the limit that made Observe change the level last.
func (r *RateLimit) Cause() Limit { return r.cause }

// Idle says that the JVM does nothing: what it took when it did is no reason to keep its level low.
func (r *RateLimit) Idle() {
	r.peak = [maxLevel + 1]float64{}
	r.patience = min(r.patience, rateCalm)
}

// Observe returns the level that is wanted now and whether it has changed. level is the one in force, taken what the
// recording has taken so far, bytes or CPU nanoseconds.
func (r *RateLimit) Observe(now time.Time, taken int64, level uint64) (want uint64, change bool) {
	if !r.Limited() {
		return level, false
	}
	if level > r.asked && level <= maxLevel {
		r.asked, r.want = level, level
	}
	if r.from.IsZero() || taken < r.taken {
		r.from, r.taken = now, taken
		r.patience = max(r.patience, rateCalm)
		return level, false
	}
	least := r.span
	if least == 0 {
		least = rateSpan
	}
	span := now.Sub(r.from)
	if span < least {
		return level, false
	}
	n := float64(taken-r.taken) / span.Seconds()
	r.from, r.taken = now, taken
	r.remember(span, level, n)
	limit := r.limit(now, n)
	r.judge(n, float64(limit.PerSecond))
	switch {
	case r.above >= 2 && level > 1:
		r.above = 0
		if level < r.asked { // it was lowered before, raised, and is too much again
			r.patience = min(2*r.patience, int(ratePatience/least))
		}
		r.want = level - 1
	case r.below >= r.patience && r.want < r.asked && r.peak[r.want+1] <= float64(limit.PerSecond):
		r.below = 0
		r.want++
		if r.shared != nil { // nobody else counts on it any more
			r.shared.part(r, now, max(n, r.peak[r.want]))
		}
	default:
		return r.want, false
	}
	r.cause = limit
	return r.want, true
}

// remember notes that a span at level took n a second.
func (r *RateLimit) remember(span time.Duration, level uint64, n float64) {
	for l := range r.peak {
		r.peak[l] *= math.Exp2(-span.Seconds() / rateForget.Seconds())
	}
	if level < uint64(len(r.peak)) {
		r.peak[level] = max(r.peak[level], n)
	}
}

// judge counts spans in a row that took too much or little.
func (r *RateLimit) judge(n, limit float64) {
	switch {
	case n > limit:
		r.above, r.below = r.above+1, 0
	case n < limit/4:
		r.above, r.below = 0, r.below+1
	default:
		r.above, r.below = 0, 0
	}
}

// limit returns the lower of the own limit and the part of the shared one.
func (r *RateLimit) limit(now time.Time, n float64) Limit {
	l := r.own
	if r.shared != nil {
		if part := r.shared.part(r, now, n); l.PerSecond == 0 || part < l.PerSecond {
			l = Limit{r.shared.key, part}
		}
	}
	return l
}
