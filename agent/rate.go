package agent

import "time"

// rate keeps what is written to the disk within max_write_rate by lowering the depth: full, survivors, samples. It looks at spans of
// rateSpan; after two spans in a row above the limit the depth is lowered by one, after rateCalm spans below a quarter of it, raised by one, up
// to what was asked for. What a raise costs is a listing, so a depth that was too much is tried again ever later.
type rate struct {
	max   int64 // bytes a second; 0: no limit
	asked uint64

	from     time.Time
	written  int64
	above    int
	below    int
	patience int
}

const (
	rateSpan = 5 * time.Second
	rateCalm = 12
)

// look gives the depth that is wanted now; depth is the one that the last epoch was recorded at, written what the store has written so far.
func (r *rate) look(now time.Time, written int64, depth uint64) (want uint64, change bool) {
	if r.max == 0 {
		return depth, false
	}
	r.asked = max(r.asked, depth)
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
	switch {
	case n > float64(r.max):
		r.above, r.below = r.above+1, 0
	case n < float64(r.max)/4:
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
		return depth - 1, true
	case r.below >= r.patience && depth < r.asked:
		r.below = 0
		return depth + 1, true
	}
	return depth, false
}
