package session

import (
	"time"

	"github.com/heapcam/heapcam/emergency"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/syncpoint"
	"github.com/heapcam/heapcam/trace"
)

const (
	// stormBudget is the share of max_trace_size that listings forced by full collections may take in stormTime.
	stormBudget = 0.1
	stormTime   = 10 * time.Minute
)

// schedule decides when the probe is asked for a sync point, and which listings are stored.
type schedule struct {
	plan      *syncpoint.Plan
	emergency *emergency.Control
	storms    syncpoint.Budget // of listings that full collections force
	ratio     float64          // of a listing, stored by raw
	tooLong   bool             // a sync point would take longer than max_sync_pause
	tooSmall  told             // that none fits into the recording
}

// told is a warning that is not repeated while it says about the same.
type told struct {
	needed int64 // bytes that it named
	at     time.Time
}

// toldAgain is after how long a warning comes again, toldMore what share more it has to name to come before.
const toldAgain, toldMore = 10 * time.Minute, 0.5

// again says whether a warning that now names so many bytes is to be written.
func (t *told) again(needed int64, now time.Time) bool {
	if float64(needed) <= (1+toldMore)*float64(t.needed) && now.Sub(t.at) < toldAgain {
		return false
	}
	*t = told{needed, now}
	return true
}

func newSchedule(maxTraceSize int64, e *emergency.Control) schedule {
	return schedule{
		plan: syncpoint.New(), emergency: e, ratio: 1,
		storms: syncpoint.Budget{Bytes: int64(stormBudget * float64(maxTraceSize)), Span: uint64(stormTime)},
	}
}

// forcedCause is what the JVM calls the cause of a collection that an agent forces, as an emergency of method gc does.
const forcedCause = "JvmtiEnv ForceGarbageCollection"

// collection says that a collection has passed. What an agent has forced is not natural.
func (c *schedule) collection(p *trace.Pause) {
	if p.Kind == trace.PauseWalk || p.Cause == forcedCause {
		return
	}
	c.plan.Natural()
	c.emergency.Natural()
}

// urgent says that an emergency is under way.
func (c *schedule) urgent() bool { return c.emergency.Waiting() }

// wantsFile says that the next listing begins a file.
func (c *schedule) wantsFile() bool { return c.plan.Rotate() }

// beginsUnlisted says that a file is wanted and, since nothing is listed at this depth or in this ring, may begin now.
func (c *schedule) beginsUnlisted(depth uint64) bool {
	return (depth == trace.DepthSamples || c.plan.Blind()) && c.plan.Wanted()
}

// began says that a file has begun, with a listing or without.
func (c *schedule) began(listed bool) {
	if !listed && c.plan.Blind() {
		c.plan.Unlisted()
	} else {
		c.plan.Began()
	}
}

// admits says whether a listing of size raw bytes is to be stored: those that full collections force have a budget.
func (c *schedule) admits(y *trace.Sync, size int) bool {
	return y.Reason != trace.SyncFull || c.storms.Allow(y.Time, int64(float64(size)*c.ratio))
}

// listed says whether the store took a listing of raw bytes, and by how many bytes the open file grew.
func (c *schedule) listed(stored bool, raw int, grew int64) {
	switch {
	case stored:
		c.plan.Synced()
		if grew > 0 {
			c.ratio = float64(grew) / float64(raw)
		}
	case !c.plan.Blind():
		c.plan.Refused()
	}
}

// ask asks the probe for a sync point if one is needed, in an emergency at once.
func (c *schedule) ask(now time.Time, h shmring.Status, st ringstore.Stats, request func() (uint64, error)) error {
	if c.plan.Next(syncpoint.Store{Active: st.Active, Rotate: st.Rotate}) {
		_, err := request()
		return err
	}
	_, err := c.emergency.Poll(emergency.View{
		Due: c.plan.Due(), Room: st.Room, Reserve: c.plan.Reserve(), Answered: h.EmergencyDone, Now: now,
	})
	return err
}

// pauseChanged says whether listings have become too long for max_sync_pause, or no longer are.
func (c *schedule) pauseChanged(h shmring.Status) bool {
	changed := h.SyncTooLong != c.tooLong
	c.tooLong = h.SyncTooLong
	return changed
}
