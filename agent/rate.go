package agent

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/heapcam/heapcam/trace"
)

// rate keeps what is written to the disk within max_write_rate, and within the part of max_total_write_rate that falls to this JVM, by lowering the depth: full,
// survivors, samples. It looks at spans of rateSpan; after two spans in a row above the limit the depth is lowered by one, after rateCalm spans below a
// quarter of it, raised by one, up to what was asked for, unless what that depth wrote last, as far as that is remembered (it fades by half in rateForget), does
// not fit. What a raise costs is a listing, so a depth that was too much is tried again ever later.
type rate struct {
	max    int64          // bytes a second; 0: no limit of its own
	shared *rates         // nil: there is none
	asked  uint64         // the most that was seen
	want   uint64         // as lowered
	told   rateLimitation // the limit, when want was changed last

	from     time.Time
	written  int64
	above    int
	below    int
	patience int
	wrote    [trace.DepthFull + 1]float64 // the most that a span at a depth wrote, bytes a second, fading
}

type rateLimitation struct {
	key   string // of the configuration
	limit int64  // bytes a second
}

const (
	rateSpan   = 5 * time.Second
	rateCalm   = 12
	rateForget = 10 * time.Minute
)

// look gives the depth that is wanted now; depth is the one that the last epoch was recorded at, written what the store has written so far.
func (r *rate) look(now time.Time, written int64, depth uint64) (want uint64, change bool) {
	if r.max == 0 && r.shared == nil {
		return depth, false
	}
	if depth > r.asked && depth <= trace.DepthFull {
		r.asked, r.want = depth, depth
	}
	if r.from.IsZero() || written < r.written {
		r.from, r.written = now, written
		r.patience = max(r.patience, rateCalm)
		return depth, false
	}
	span := now.Sub(r.from)
	if span < rateSpan {
		return depth, false
	}
	n := float64(written-r.written) / span.Seconds()
	r.from, r.written = now, written
	for d := range r.wrote {
		r.wrote[d] *= math.Exp2(-span.Seconds() / rateForget.Seconds())
	}
	if depth < uint64(len(r.wrote)) {
		r.wrote[depth] = max(r.wrote[depth], n)
	}
	limit := r.limit(n)
	switch {
	case n > float64(limit.limit):
		r.above, r.below = r.above+1, 0
	case n < float64(limit.limit)/4:
		r.above, r.below = 0, r.below+1
	default:
		r.above, r.below = 0, 0
	}
	switch {
	case r.above >= 2 && depth > 1:
		r.above = 0
		if depth < r.asked { // it was lowered before, raised, and is too much again
			r.patience *= 2
		}
		r.want = depth - 1
	case r.below >= r.patience && r.want < r.asked && r.wrote[r.want+1] <= float64(limit.limit):
		r.below = 0
		r.want++
		if r.shared != nil { // nobody else counts on it any more
			r.shared.part(r, max(n, r.wrote[r.want]))
		}
	default:
		return r.want, false
	}
	r.told = limit
	return r.want, true
}

func (r *rate) limit(n float64) rateLimitation {
	l := rateLimitation{"max_write_rate", r.max}
	if r.shared != nil {
		if part := r.shared.part(r, n); r.max == 0 || part < r.max {
			l = rateLimitation{"max_total_write_rate", part}
		}
	}
	return l
}

// rates shares max_total_write_rate among the JVMs: what some do not use the others may, and each of those the same (max-min fairness).
type rates struct {
	max int64 // bytes a second
	mu  sync.Mutex
	of  map[*rate]float64 // what each writes
}

// part takes note that r writes n bytes a second, and gives what it may.
func (t *rates) part(r *rate, n float64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of[r] = n
	others := make([]float64, 0, len(t.of))
	for o, n := range t.of {
		if o != r {
			others = append(others, n)
		}
	}
	slices.Sort(others)
	left := float64(t.max)
	for i, n := range others { // those that write less than an equal part of what is left leave the rest
		if n >= left/float64(len(others)-i+1) {
			return int64(left / float64(len(others)-i+1))
		}
		left -= n
	}
	return int64(left)
}

func (t *rates) leave(r *rate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, r)
}
