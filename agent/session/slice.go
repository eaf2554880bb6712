package session

import (
	"time"

	"github.com/heapcam/heapcam/emergency"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

// slice takes in a part of a listing that begins at the position start. The first one of a ramp begins a file if one is
// wanted; all that follow are stored there.
func (s *Session) slice(b trace.Block, y *trace.Slice, start uint64) {
	s.stamp(y.Time)
	s.set(func(st *Status) {
		if y.Last() {
			st.SyncPoints++
		}
		st.LastSyncNS, st.LongestSyncNS = y.Probe, max(st.LongestSyncNS, y.Probe)
	})
	s.heap.live.slice(y)
	total, known := s.heap.live.total()
	s.heap.view.slice(y, total, known)
	s.flushTo(start)
	s.out.info.FirstGC, s.out.info.LastGC = y.GC, y.GC
	s.stamp(y.Time)
	flags := s.syncs.marks(y)
	if y.First() && s.in.known && s.syncs.wantsFile() {
		s.summarize(nil, start)
		s.out.info.FirstGC, s.out.info.LastGC = y.GC, y.GC
		s.stamp(y.Time)
		s.begin(&listing{block: b, samples: y.Samples, sited: y.Sited, flags: flags, slice: y})
		return
	}
	s.out.info.Flags |= flags
	if s.in.known && y.Last() {
		s.out.pushDefs(s.defs.Listed(y.Samples, y.Sited))
	}
	s.out.push(b)
	if !s.flush() {
		return
	}
	s.syncs.plan.Slice(y, s.out.st.Stats().Active)
	s.alarms.stale = s.alarms.stale && !y.Last()
	if y.Last() && known {
		s.summarize(&trace.Sync{GC: y.GC, Samples: y.Samples}, s.out.pos)
	}
}

// marks gives the flags of the frame of a slice.
func (c *schedule) marks(y *trace.Slice) (flags uint16) {
	flags = ringstore.FlagRamp
	if y.First() {
		flags |= ringstore.FlagListing
	}
	if y.Last() && (y.First() || c.plan.Ramping()) {
		flags |= ringstore.FlagComplete
	}
	return flags
}

// step requests a stop for the next slice of a ramp that is late. at is the stream's time. There is none in a storm:
// the next full collection would end the ramp.
func (c *schedule) step(now time.Time, at uint64, h shmring.Status, st ringstore.Stats) error {
	if h.Storm > shmring.Monotonic() || !c.plan.Late(at, st.Active, st.Target) {
		return nil
	}
	sent, err := c.emergency.Step(emergency.View{Answered: h.EmergencyDone, Now: now})
	if sent {
		c.plan.Stepped(at)
	}
	return err
}
