package agent

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/heapcam/heapcam/trace"
)

// rate keeps what one JVM takes a second, of the disk or of the agent's CPU, within a limit of its own and within the part of a common one that falls to
// it, by lowering a level: the depth (full, survivors, samples), and above it how well is compressed where the CPU is meant. It looks at spans; after two
// in a row above the limit the level is lowered by one, after rateCalm spans below a quarter of it, raised by one, up to what was asked for, unless
// what that level took last, as far as that is remembered (it fades by half in rateForget), does not fit. What a raise costs is a listing, so a level
// that was too much is tried again ever later.
type rate struct {
	max    int64          // a second; 0: no limit of its own
	key    string         // of the configuration, of max
	shared *rates         // nil: there is none
	span   time.Duration  // 0: rateSpan
	asked  uint64         // the most that was seen
	want   uint64         // as lowered
	told   rateLimitation // the limit, when want was changed last

	from     time.Time
	taken    int64
	above    int
	below    int
	patience int
	took     [maxLevel + 1]float64 // the most that a span at a level took, a second, fading
}

type rateLimitation struct {
	key   string // of the configuration
	limit int64  // a second
}

const (
	rateSpan   = 5 * time.Second
	rateCalm   = 12
	rateForget = 10 * time.Minute
	// ratePatience is the longest calm that is waited for.
	ratePatience = time.Hour
	// easeLevels are above the depths: compression as configured, faster, fastest.
	easeLevels = 2
	maxLevel   = trace.DepthFull + easeLevels
)

// look gives the level that is wanted now; level is the one that holds, taken what was taken so far.
func (r *rate) look(now time.Time, taken int64, level uint64) (want uint64, change bool) {
	if r.max == 0 && r.shared == nil {
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
	for l := range r.took {
		r.took[l] *= math.Exp2(-span.Seconds() / rateForget.Seconds())
	}
	if level < uint64(len(r.took)) {
		r.took[level] = max(r.took[level], n)
	}
	limit := r.limit(now, n)
	switch {
	case n > float64(limit.limit):
		r.above, r.below = r.above+1, 0
	case n < float64(limit.limit)/4:
		r.above, r.below = 0, r.below+1
	default:
		r.above, r.below = 0, 0
	}
	switch {
	case r.above >= 2 && level > 1:
		r.above = 0
		if level < r.asked { // it was lowered before, raised, and is too much again
			r.patience = min(2*r.patience, int(ratePatience/least))
		}
		r.want = level - 1
	case r.below >= r.patience && r.want < r.asked && r.took[r.want+1] <= float64(limit.limit):
		r.below = 0
		r.want++
		if r.shared != nil { // nobody else counts on it any more
			r.shared.part(r, now, max(n, r.took[r.want]))
		}
	default:
		return r.want, false
	}
	r.told = limit
	return r.want, true
}

func (r *rate) limit(now time.Time, n float64) rateLimitation {
	l := rateLimitation{r.key, r.max}
	if r.shared != nil {
		if part := r.shared.part(r, now, n); r.max == 0 || part < r.max {
			l = rateLimitation{r.shared.key, part}
		}
	}
	return l
}

// rates shares a limit among the JVMs: what some do not use the others may, and each of those the same (max-min fairness).
type rates struct {
	key string // of the configuration
	mu  sync.Mutex
	max int64 // a second
	of  map[*rate]demand
}

// demand is what one takes a second, as it said last.
type demand struct {
	n  float64
	at time.Time
}

// demandFor is how long that counts: a JVM of which nothing comes says nothing.
const demandFor = 30 * time.Second

func newRates(key string, limit int64) *rates {
	return &rates{key: key, max: limit, of: map[*rate]demand{}}
}

// part takes note that r takes n a second, and gives what it may.
func (t *rates) part(r *rate, now time.Time, n float64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of[r] = demand{n, now}
	others := make([]float64, 0, len(t.of))
	for o, k := range t.of {
		switch {
		case o == r:
		case now.Sub(k.at) > demandFor:
			others = append(others, 0)
		default:
			others = append(others, k.n)
		}
	}
	slices.Sort(others)
	left := float64(t.max)
	for i, n := range others { // those that take less than an equal part of what is left leave the rest
		if n >= left/float64(len(others)-i+1) {
			return int64(left / float64(len(others)-i+1))
		}
		left -= n
	}
	return int64(left)
}

// limit makes the limit what it says.
func (t *rates) limit(n int64) { t.mu.Lock(); t.max = n; t.mu.Unlock() }

func (t *rates) leave(r *rate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, r)
}
