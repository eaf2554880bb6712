// Package emergency is the scheduler's last resort: a sync point that does not wait for a natural collection (ICPE'16
// §3.3).
//
// Terms. A *natural* collection is one that the application caused. An *emergency* makes a stop of its own: method
// walk stops without collecting, gc forces a full collection, off makes none. R is the *reserve*: what the epochs
// before the next listing take.
//
// Invariants:
//
//  1. An emergency is sent only when a sync point is due, natural collections had the first chance, and what is left
//     would not hold R.
//  2. There is no second emergency before a natural collection has passed, whether or not the first was answered. So
//     between two natural collections there is at most one stop more. Until then the caller drops and counts epochs
//     that do not fit.
//  3. An emergency that is not answered within the time-out is abandoned and counted. Nothing waits for it any longer,
//     and it is not sent again.
//  4. A request that could not be sent counts as not made: the next poll may send it.
//
// What it does not do: it knows no files; the View says how much is left and what R is. It is used by one
// goroutine.
package emergency

import (
	"fmt"
	"time"

	"github.com/heapcam/heapcam/shmring"
)

// Timeout is how long an answer may take. A stop waits for all threads to reach a safepoint, and the listing of a
// large heap takes up to max_sync_pause. A JVM that needs longer than Timeout is stopped or starved.
const Timeout = 10 * time.Second

// View is what a poll sees.
type View struct {
	// Due says that a sync point was asked of the natural collections and has not come.
	Due bool
	// Room is what the open file may still take; Reserve is R. Both in bytes.
	Room, Reserve int64
	// Answered is the newest ticket that the probe has answered.
	Answered uint64
	// Now is the time of the poll; only differences matter.
	Now time.Time
}

// Stats counts what happened since New.
type Stats struct {
	Sent     uint64
	Answered uint64
	TimedOut uint64
	// Held counts the phases in which one was due but not allowed: what did not fit was dropped.
	Held uint64
}

// Send asks the probe for an emergency and gives its ticket.
type Send func(shmring.Method) (ticket uint64, err error)

// Control decides and sends.
type Control struct {
	method shmring.Method
	off    bool
	send   Send

	spent  bool // one was sent, and no natural collection has passed since
	held   bool // counted in this phase
	open   bool // sent and neither answered nor timed out
	ticket uint64
	sentAt time.Time
	stats  Stats
}

// New makes a control; method is walk, gc or off.
func New(method string, send Send) (*Control, error) {
	c := &Control{send: send}
	switch method {
	case "walk":
		c.method = shmring.MethodWalk
	case "gc":
		c.method = shmring.MethodGC
	case "off":
		c.off = true
	default:
		return nil, fmt.Errorf("emergency %q is neither walk, gc nor off", method)
	}
	return c, nil
}

// Natural says that a natural collection has passed.
func (c *Control) Natural() { c.spent, c.held = false, false }

// Waiting reports whether an emergency was sent and not answered yet.
func (c *Control) Waiting() bool { return c.open }

// Stats gives the counters.
func (c *Control) Stats() Stats { return c.stats }

// Step sends a stop for one slice of a listing (docs/design/0019-rolling-sync-points.md), unless one is under way or
// the method is off. Such a stop is short, so invariant 2 does not bound it; the caller does. It never collects:
// a full collection would end the listing. It reports whether it was sent; the error is that of sending.
func (c *Control) Step(v View) (sent bool, err error) {
	c.answered(v)
	if c.off || c.open {
		return false, nil
	}
	ticket, err := c.send(shmring.MethodWalk)
	if err != nil {
		return false, fmt.Errorf("emergency: %w", err)
	}
	c.ticket, c.sentAt, c.open = ticket, v.Now, true
	c.stats.Sent++
	return true, nil
}

// answered takes note of the answer to what was sent.
func (c *Control) answered(v View) {
	switch {
	case !c.open:
	case v.Answered >= c.ticket:
		c.open = false
		c.stats.Answered++
	case v.Now.Sub(c.sentAt) >= Timeout:
		c.open = false
		c.stats.TimedOut++
	}
}

// Poll decides whether an emergency is needed and sends it. It reports whether one was sent; the error is that of
// sending.
func (c *Control) Poll(v View) (sent bool, err error) {
	c.answered(v)
	if !v.Due || v.Room >= v.Reserve {
		return false, nil
	}
	if c.off || c.spent {
		if !c.held && !c.open {
			c.held = true
			c.stats.Held++
		}
		return false, nil
	}
	ticket, err := c.send(c.method)
	if err != nil {
		return false, fmt.Errorf("emergency: %w", err)
	}
	c.ticket, c.sentAt = ticket, v.Now
	c.spent, c.open = true, true
	c.stats.Sent++
	return true, nil
}
