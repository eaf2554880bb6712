package quota

import (
	"slices"
	"sync"
	"time"
)

// SharedRate shares a limit among recordings by max-min fairness: what some do not use the others may take, each of
// them the same. All methods are safe for concurrent use.
type SharedRate struct {
	key string // of the configuration
	mu  sync.Mutex
	max int64 // a second
	of  map[*RateLimit]demand
}

// demand is what one recording takes a second, as it said last.
type demand struct {
	n  float64
	at time.Time
}

// demandFor is how long a demand counts: a JVM that sends nothing says nothing.
const demandFor = 30 * time.Second

// NewSharedRate makes a shared limit, bytes or CPU nanoseconds a second, of the setting key.
func NewSharedRate(key string, perSecond int64) *SharedRate {
	return &SharedRate{key: key, max: perSecond, of: map[*RateLimit]demand{}}
}

// part takes note that r takes n a second, and returns what it may take.
func (t *SharedRate) part(r *RateLimit, now time.Time, n float64) int64 {
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

// SetLimit changes the limit.
func (t *SharedRate) SetLimit(perSecond int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.max = perSecond
}

// Leave takes r's part back. r must not look afterwards, or it takes part again.
func (t *SharedRate) Leave(r *RateLimit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, r)
}
