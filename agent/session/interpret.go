package session

import (
	"time"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

// What a session does with each kind of block. A block is decoded here and nowhere else: what follows gets the decoded
// form and, to store it, the block unchanged.

// block takes in a block of the probe that begins at the position start; h is the ring's status behind its batch.
func (s *Session) block(b trace.Block, start uint64, h shmring.Status) error {
	if b.Version > trace.FormatVersion { // not ours to judge: a newer reader may understand it
		s.out.mixed = s.out.mixed || b.Kind == trace.KindRefs
		s.out.pass(b)
		return nil
	}
	switch b.Kind {
	case trace.KindMeta:
		return decoded(b, trace.DecodeMeta, s.meta)
	case trace.KindDefs:
		return decoded(b, trace.DecodeDefs, func(d trace.Defs) {
			s.heap.live.defs(d.Types) // s.defs returns what the file lacks alone
			s.out.pushDefs(s.defs.Add(d))
		})
	case trace.KindSamples:
		return decoded(b, trace.DecodeSamples, func(x []trace.Sample) { s.samples(b, x) })
	case trace.KindEpoch:
		return decoded(b, trace.DecodeEpoch, func(e *trace.Epoch) { s.epoch(b, e, h) })
	case trace.KindSync:
		return decoded(b, trace.DecodeSync, func(y *trace.Sync) { s.sync(b, y, start) })
	case trace.KindSlice:
		return decoded(b, trace.DecodeSlice, func(y *trace.Slice) { s.slice(b, y, start) })
	case trace.KindRefs:
		return decoded(b, trace.DecodeRefs, func(p *trace.RefPart) { s.references(b, p, start) })
	case trace.KindEnd:
		return decoded(b, trace.DecodeEnd, func(e trace.End) {
			s.stamp(e.Time)
			s.out.pass(b)
			s.in.ended = true
		})
	case trace.KindGap:
		return decoded(b, trace.DecodeGap, func(g trace.Gap) {
			s.stamp(g.Time)
			s.heap.live.unknown()
			s.out.pass(b)
		})
	}
	s.out.pass(b) // unknown kinds of our version are kept: readers skip and count them
	return nil
}

func decoded[T any](b trace.Block, decode func(trace.Block) (T, error), take func(T)) error {
	v, err := decode(b)
	if err != nil {
		return err
	}
	take(v)
	return nil
}

// stored takes in a block of the ring that the store has already. Its definitions may be missing in the file that this
// session began.
func (s *Session) stored(b trace.Block) {
	switch b.Kind {
	case trace.KindMeta:
		_ = decoded(b, trace.DecodeMeta, s.meta)
	case trace.KindDefs:
		_ = decoded(b, trace.DecodeDefs, func(d trace.Defs) {
			if lacks := s.defs.Add(d); s.out.open {
				s.out.pushDefs(lacks)
			}
		})
	case trace.KindEnd:
		s.in.ended = true
	}
}

// recalled takes in a block of the recording's own files.
func (s *Session) recalled(b trace.Block) {
	switch b.Kind {
	case trace.KindMeta:
		_ = decoded(b, trace.DecodeMeta, func(m trace.Meta) { s.learn(m) })
	case trace.KindDefs:
		_ = decoded(b, trace.DecodeDefs, func(d trace.Defs) { s.defs.Add(d) })
	case trace.KindEnd:
		s.in.ended = true
	}
}

// meta takes in a META and begins the first file with it, or repeats in the open file what has changed.
func (s *Session) meta(m trace.Meta) {
	fresh, changed := s.learn(m)
	named := s.name(m.Resource)
	switch {
	case !s.out.open && s.in.known:
		// What comes before the first listing is samples and pauses; an exit before any collection leaves them.
		s.begin(nil)
	case s.out.open && named:
		s.remark(trace.Meta{Resource: s.in.whose})
	case s.out.open && (changed || len(fresh) > 0):
		s.out.push(trace.EncodeMeta(trace.Meta{JVM: s.in.jvm, HasJVM: changed, Notes: fresh}))
	}
}

// learn takes in what a META says of the JVM. changed: the probe lost allocation sampling to another agent, or has it
// now.
func (s *Session) learn(m trace.Meta) (fresh []trace.Note, changed bool) {
	fresh, changed = s.in.learn(m)
	if m.HasJVM {
		s.heap.live.jvm(&m.JVM)
		if s.steer.limits != nil {
			s.showBudget()
		}
		s.set(func(st *Status) {
			st.NoSites = m.JVM.Flags&trace.JVMNoSampling != 0
			st.VM, st.Probe, st.Interval = m.JVM.VM, m.JVM.Probe, m.JVM.Interval
			st.Depth = DepthName(m.JVM.Depth)
			st.DepthAsked = st.Depth
			if c := m.JVM.Collector; trace.Concurrent(c) {
				st.DepthWhy = "depth samples: the collector is " + trace.CollectorNames.String(c)
			}
			// A later agent continues the recording of an earlier one, and the ring's counters cover both.
			if t := time.UnixMilli(int64(m.JVM.T0WallMS)); m.JVM.T0WallMS != 0 && t.Before(st.Since) {
				st.Since = t
			}
		})
	}
	for _, n := range m.Notes {
		logs.Write(&s.log, logs.ProbeNote, logs.Note.Of(n.Text))
	}
	return fresh, changed
}

func (s *Session) samples(b trace.Block, all []trace.Sample) {
	var need trace.Defs
	for i := range all {
		s.defs.Need(&need, all[i].Frame, all[i].Thread)
		s.stamp(all[i].Time)
	}
	s.heap.live.samples(all)
	s.out.pushDefs(need)
	s.out.pass(b)
}

func (s *Session) epoch(b trace.Block, e *trace.Epoch, h shmring.Status) {
	p := &e.Pause
	s.in.depth, s.in.pauseAt = p.Depth, time.Now()
	s.steer.budget.paused(p)
	s.status.Pauses.paused(e)
	s.stamp(p.Start + p.Dur)
	if len(e.Sited) > 0 {
		s.out.pushDefs(s.defs.Listed(nil, e.Sited))
	}
	s.out.collection(p.GC)
	s.recordGaps(s.losses.before(p.GC, h, s.in.time))
	s.out.passEpoch(b)
	if s.heap.epoch(e) {
		s.summarize(nil, s.out.pos)
	}
	before, eden, survivor, humongous, old := trace.InUse(e.Spaces)
	if s.alarms.pause(p, before, eden+survivor+humongous+old) {
		s.stormBegins(p.Start+p.Dur, &h)
	}
	s.collected(p, eden+survivor+humongous+old)
	s.collectionRow(e, eden+survivor+humongous+old)
	leftOut := p.Flags&trace.PauseLeftOut != 0
	s.syncs.collection(p)
	s.set(func(st *Status) {
		st.Collections++
		st.Missed += p.Missed()
		st.LastGC, st.Interval = p.GC, p.Interval
		if leftOut {
			st.ListingsLeftOut++
		} else {
			st.Depth = DepthName(p.Depth)
		}
	})
	if leftOut {
		s.weather(p)
	}
	switch {
	case !leftOut && s.syncs.beginsUnlisted(p.Depth):
		s.summarize(nil, s.out.pos)
		s.begin(nil)
	case leftOut && s.in.known && s.syncs.plan.Wanted() && s.overlong(): // else the ring would be one file
		s.summarize(nil, s.out.pos)
		s.begin(nil)
		s.syncs.plan.Lost()
	}
}

// overlong says whether the open file is a quarter larger than a file is to be.
func (s *Session) overlong() bool {
	st := s.out.st.Stats()
	return st.Target > 0 && st.Active > st.Target+st.Target/4
}

// sync takes in a listing that begins at the position start. What precedes it is stored without it: it begins a file,
// or has a frame of its own, so that no epoch is lost with it where it does not fit.
func (s *Session) sync(b trace.Block, y *trace.Sync, start uint64) {
	s.stamp(y.Time)
	s.set(func(st *Status) {
		st.SyncPoints++
		switch y.Reason {
		case trace.SyncFirst, trace.SyncRotation:
		case trace.SyncWalk, trace.SyncGC:
			st.SyncPointsEmergency++
		default:
			st.SyncPointsForced++
		}
		st.LastSyncNS, st.LongestSyncNS = y.Probe, max(st.LongestSyncNS, y.Probe)
	})
	s.heap.live.sync(y)
	// A session that has reconnected, and whose definitions are not here yet, can list in the old file only.
	switch {
	case s.in.known && s.syncs.wantsFile():
		s.flushTo(start)
		s.heap.view.sync(y)
		s.summarize(y, start)
		s.listing(y)
		s.begin(&listing{block: b, samples: y.Samples, sited: y.Sited, flags: ringstore.FlagListing})
	case !s.syncs.admits(y, b.Size()):
		s.skipListing(y)
	default:
		s.flushTo(start)
		s.appendListing(b, y)
	}
}

// listing notes that the next frame or file head is that of the sync point y.
func (s *Session) listing(y *trace.Sync) {
	s.out.info.FirstGC, s.out.info.LastGC = y.GC, y.GC
	s.stamp(y.Time)
}

// appendListing puts a listing into the open file.
func (s *Session) appendListing(b trace.Block, y *trace.Sync) {
	before := s.out.st.Stats().Active
	s.listing(y)
	s.out.info.Flags |= ringstore.FlagListing
	if s.in.known {
		s.out.pushDefs(s.defs.Listed(y.Samples, y.Sited))
	}
	s.out.pass(b)
	stored := s.flush()
	s.alarms.stale = s.alarms.stale && !stored
	if !s.in.known {
		return
	}
	s.syncs.listed(stored, b.Size(), s.out.st.Stats().Active-before)
	if stored {
		s.heap.view.sync(y)
		s.summarize(y, s.out.pos)
	}
}

// skipListing writes a summary of a listing instead of it.
func (s *Session) skipListing(y *trace.Sync) {
	s.heap.view.unlisted = true
	s.syncs.plan.Skipped()
	s.set(func(st *Status) { st.ListingsSkipped++ })
	s.out.push(trace.EncodeMeta(trace.Meta{Unlisted: []trace.Unlisted{{
		Time: y.Time, GC: y.GC, Objects: y.Objects, Bytes: y.Bytes,
		Largest: largestOf(y, s.heap.live, s.defs, summaryTypes),
	}}}))
}

// weather notes, once a storm, that the probe leaves out listings.
func (s *Session) weather(p *trace.Pause) {
	if s.in.stormUntil < p.Start {
		const text = "full collections follow each other: not all are listed, so that recording takes at most a few " +
			"percent of ten seconds; between two listings it holds pauses, totals and samples"
		s.out.push(trace.EncodeMeta(trace.Meta{Notes: []trace.Note{{Time: s.in.time, Text: text}}}))
		s.set(func(st *Status) { st.Switches++; st.LastSwitch, st.DepthWhy = text, text })
	}
	s.in.stormUntil = p.Start + uint64(stormNews)
}

// stormNews is how long no listing may be left out before the next one is noted again.
const stormNews = time.Minute

// stamp takes note of a time of the stream in the block in hand. The end of a pause may lie beyond what can be written.
func (s *Session) stamp(t uint64) {
	t = min(t, trace.MaxTime)
	s.out.stamp(t)
	s.in.time = max(s.in.time, t)
}

// note writes a line into the recording, at a time of the stream.
func (s *Session) note(at uint64, texts ...string) {
	notes := make([]trace.Note, 0, len(texts))
	for _, t := range texts {
		notes = append(notes, trace.Note{Time: at, Text: t})
	}
	s.remark(trace.Meta{Notes: notes})
}

// remark writes notes and remarks into the recording.
func (s *Session) remark(m trace.Meta) {
	s.out.push(trace.EncodeMeta(m))
	s.flush()
}

// noteSwitch writes a change of depth, interval or limits into the recording and into status.
func (s *Session) noteSwitch(text string) {
	s.note(s.in.time, text)
	s.set(func(st *Status) { st.Switches++; st.LastSwitch = text })
}

// noteDepth is noteSwitch for a change of the depth.
func (s *Session) noteDepth(text string) {
	s.noteSwitch(text)
	s.set(func(st *Status) { st.DepthWhy = text })
}
