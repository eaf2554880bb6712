package agent

import (
	"errors"
	"time"

	"github.com/heapcam/heapcam/coverage"
	"github.com/heapcam/heapcam/trace"
)

// What a session hands to its store: definitions, listings and frames, and what is told when the store refuses them.

type syncBlock struct {
	b trace.Block
	y *trace.Sync
}

func (s *session) needSync(y *trace.Sync) trace.Defs {
	var need trace.Defs
	for i := range y.Samples {
		s.defs.need(&need, y.Samples[i].Frame, y.Samples[i].Thread)
	}
	return need
}

// begin starts a new file with META, DEFS and, unless nil, the sync point.
func (s *session) begin(y *syncBlock) {
	s.forget(y)
	s.defs.newFile()
	head := trace.AppendBlock(nil, trace.EncodeMeta(trace.Meta{JVM: s.jvm, HasJVM: true, Notes: s.notes}))
	head = appendDefs(head, s.defs.all())
	if s.lost.Reason != 0 { // before the listing: what is known ends with the old file, and begins anew with it
		head = trace.AppendBlock(head, trace.EncodeGap(s.lost))
	}
	if y != nil {
		head = appendDefs(head, s.needSync(y.y))
		head = trace.AppendBlock(head, y.b)
	}
	s.info.Listing, s.info.Defs = y != nil, true
	err := s.st.Rotate(head, s.info)
	if err != nil {
		s.defs.newFile() // whatever file is open, nothing is known of what it has
		if y != nil && s.tooLarge(err) {
			s.begin(nil)
			return
		}
		s.refused(err, 0)
		s.clearInfo() // what comes next is not in a file that begins with a listing
		if y != nil {
			s.plan.Failed()
		}
		return
	}
	first := !s.begun
	s.begun, s.dirty, s.lost = true, true, trace.Gap{}
	if y == nil && s.plan.Blind() {
		s.plan.Unlisted()
	} else {
		s.plan.Began()
	}
	s.clearInfo()
	if !first {
		s.set(func(st *Status) { st.Rotations++ })
	}
}

// forget drops the types that have gone, if it is known of which types there are objects or if none are recorded.
func (s *session) forget(y *syncBlock) {
	if s.retoldAt != 0 && s.info.Source >= s.retoldAt {
		s.retoldAt = 0
		s.defs.retold()
	}
	if len(s.defs.gone.types)+len(s.defs.gone.loaders) == 0 {
		return
	}
	listed := map[uint64]struct{}{}
	known := s.live.est.Totals(func(typ uint32, _ coverage.Count) { listed[uint64(typ)] = struct{}{} })
	if !known && (y != nil || s.depth != trace.DepthSamples) {
		return
	}
	s.defs.forget(func(typ uint64) bool { _, ok := listed[typ]; return ok })
	s.live.keep(s.defs.types, s.jvm.Align)
}

// push appends a block to what the next frame will hold.
func (s *session) push(b trace.Block) { s.pending = trace.AppendBlock(s.pending, b) }

func (s *session) pushDefs(d trace.Defs) {
	s.info.Defs = s.info.Defs || !empty(d)
	s.pending = appendDefs(s.pending, d)
}

// tooLarge says whether err means that no sync point fits into the ring, and takes note of it.
func (s *session) tooLarge(err error) bool {
	var small tooSmallError
	if !errors.As(err, &small) {
		return false
	}
	s.log.Warn().Err(err).Int64("needed", small.TooSmall()).Msg("no listing fits: recording goes on without, and a file alone does not open")
	s.plan.TooLarge()
	s.set(func(st *Status) { st.StoreError = err.Error() })
	return true
}

// flush gives the store what is pending, and says whether it took it. What it refuses is lost and counted; the loss stands in a GAP before
// what it takes next.
func (s *session) flush() bool {
	if len(s.pending) == 0 {
		return true
	}
	out := s.pending
	if s.lost.Reason != 0 { // what was lost may have held definitions
		s.info.Defs = true
		out = append(appendDefs(trace.AppendBlock(nil, trace.EncodeGap(s.lost)), s.defs.all()), out...)
	}
	var err error
	if s.begun {
		err = s.st.Append(out, s.info)
	} else {
		err = errNoFile
	}
	switch {
	case err == nil:
		s.lost = trace.Gap{}
		s.dirty = true
	case s.info.Listing && s.epochs == 0 && s.tooLarge(err):
		s.defs.newFile()
	default:
		s.refused(err, s.epochs)
		s.defs.newFile()
	}
	s.pending = s.pending[:0]
	if cap(s.pending) > 8*readBatch { // a rare large sync point must not hold its memory for ever
		s.pending = nil
	}
	s.epochs = 0
	s.clearInfo()
	return err == nil
}

var errNoFile = errors.New("no file has begun: the probe has not introduced its JVM yet")

func (s *session) clearInfo() {
	s.info = frameInfo{Source: s.info.Source}
}

// refused counts what the store did not take and asks for a sync point: a reader has to start anew behind the gap.
func (s *session) refused(err error, epochs uint64) {
	if now := time.Now(); s.lost.Reason == 0 && now.Sub(s.refusedAt) > refusedEvery {
		s.refusedAt = now
		s.log.Warn().Err(err).Msg("the store refused a write: epochs are dropped until a sync point fits")
	}
	s.lost.Reason = trace.GapStore
	s.lost.Epochs += epochs
	s.lost.Time = s.time
	s.live.unknown()
	s.plan.Lost()
	s.count(func(d *Drops) { d.StoreEpochs += epochs })
	s.set(func(st *Status) { st.StoreError = err.Error() })
}

// tellLoss writes GAPs for what was lost before the epoch gc. Numbers that are missing say how many epochs and where, also what was lost while
// no agent ran; the ring's counter is ahead of what is being read. At the end (gc 0) it tells of epochs that no other has followed.
func (s *session) tellLoss(gc uint64) {
	n := uint64(0)
	if gc != 0 {
		if s.lastGC != 0 && gc > s.lastGC+1 {
			n = gc - s.lastGC - 1
		}
		s.lastGC = gc
	}
	st, err := s.ring.Status()
	if err != nil {
		st = s.ringLoss
	}
	if gc == 0 {
		// The probe counts pauses before it records them, so this also tells of one that waited for room, or was being written, when the JVM ended.
		// The counter of what was dropped may have been used up by a hole that was read after these were dropped.
		if left := st.Epochs - s.lastGC; s.lastGC != 0 && left < 1<<40 {
			n = left
		} else if left := st.EpochsDropped - s.ringLoss.EpochsDropped; left < 1<<40 {
			n = left
		}
	}
	if n != 0 && n < 1<<40 {
		s.push(trace.EncodeGap(trace.Gap{Reason: trace.GapOverflow, Epochs: n, Time: s.time}))
		s.count(func(d *Drops) { d.RingEpochs += n })
		s.live.unknown()
		// What was lost before this agent came is not in the difference of the counters.
		s.ringLoss.EpochsDropped = min(s.ringLoss.EpochsDropped+n, st.EpochsDropped)
	}
	if n := st.SamplesDropped - s.ringLoss.SamplesDropped; n != 0 && n < 1<<40 {
		s.push(trace.EncodeGap(trace.Gap{Reason: trace.GapSamples, Samples: n, Time: s.time}))
		s.count(func(d *Drops) { d.Samples += n })
		s.ringLoss.SamplesDropped = st.SamplesDropped
	}
}

// appendDefs appends d as DEFS blocks of bounded size.
func appendDefs(dst []byte, d trace.Defs) []byte {
	for !empty(d) {
		var c trace.Defs
		c.Loaders, d.Loaders = cut(d.Loaders)
		c.Types, d.Types = cut(d.Types)
		c.Methods, d.Methods = cut(d.Methods)
		c.Threads, d.Threads = cut(d.Threads)
		if len(d.Methods) == 0 { // a frame's method stands before it
			c.Frames, d.Frames = cut(d.Frames)
		}
		dst = trace.AppendBlock(dst, trace.EncodeDefs(c))
	}
	return dst
}

func cut[T any](s []T) (head, rest []T) {
	n := min(len(s), defsChunk)
	return s[:n], s[n:]
}
