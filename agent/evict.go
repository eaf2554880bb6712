package agent

import (
	"cmp"
	"runtime/debug"
	"slices"
	"time"

	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/agent/session"
)

// evictedFor is how long a recording that was ended for want of memory waits at least.
const evictedFor = time.Minute

// SetLimits makes all recordings heed l, within a second or so.
func (a *Agent) SetLimits(l session.Limits) {
	a.rates.SetLimit(l.MaxTotalWriteRate)
	a.self.SetLimits(l.MaxCPU, l.MaxMemory)
	a.limits.Store(&l)
}

// Self returns what this agent takes.
func (a *Agent) Self() quota.Self { return a.self.Status() }

// Room returns why no further recording may begin; nil: it may.
func (a *Agent) Room() error {
	young := 0
	a.mu.Lock()
	for _, e := range a.sessions {
		if !e.opening.IsZero() || e.s != nil && time.Since(e.began) < quota.OpensFor {
			young++
		}
	}
	a.mu.Unlock()
	if a.self.Full(young) {
		return quota.ErrNoMemory
	}
	return nil
}

// evict ends the recordings that hold most of the agent's memory; they may begin again when there is room.
func (a *Agent) evict() {
	a.mu.Lock()
	var all []*session.Session
	for _, e := range a.sessions {
		if e.s != nil && !e.s.Evicted() {
			all = append(all, e.s)
		}
	}
	a.mu.Unlock()
	evictLargest(all, a.self.Excess(len(all)))
	a.wg.Go(debug.FreeOSMemory)
}

// holder is a session, for what is decided here.
type holder interface {
	Bytes() int64
	Evict()
}

// evictLargest evicts those n that hold most.
func evictLargest[T holder](all []T, n int) {
	slices.SortFunc(all, func(x, y T) int { return cmp.Compare(y.Bytes(), x.Bytes()) })
	for _, s := range all[:n] {
		s.Evict()
	}
}
