package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/governor"
	"github.com/heapcam/heapcam/emergency"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/syncpoint"
	"github.com/heapcam/heapcam/trace"
)

const (
	// readBatch is how much a session takes from the ring at once, bytes; a larger block comes alone.
	readBatch = 1 << 20
	// smallBacklog and gather: while less than that is there, a session waits so long for more, since larger frames compress better.
	// What waits in the ring survives the death of JVM and agent alike.
	smallBacklog = 64 << 10
	gather       = 100 * time.Millisecond
	// idleLook is how often a session without data looks what max_total_size leaves it, whether it is paused and
	// whether the JVM ran out of memory.
	idleLook = time.Second
	// refusedEvery bounds how often the log tells that the store refuses writes; status has the counts.
	refusedEvery = 10 * time.Second
	// sampledEvery is how often the cost of sampling is noted in the recording, by notes that begin so (package analysis reads them).
	sampledEvery = time.Minute
	samplingNote = "cost: sampling "
	// stormBudget is the share of max_trace_size that listings forced by full collections may take in stormTime.
	stormBudget = 0.1
	stormTime   = 10 * time.Minute
	// summaryTypes is how many classes stand in the place of a listing that was left out.
	summaryTypes = 20
	// maxNotes bounds the notes that are repeated in each file.
	maxNotes = 32
	maxNote  = 4 << 10 // bytes of each
	// defsChunk bounds how many definitions go into one DEFS block of the agent.
	defsChunk = 1 << 14
	// maxCorrupt is how many undecodable blocks a producer may send before its ring is put into quarantine.
	maxCorrupt = 16
)

// session records one JVM. All but status belongs to its goroutine.
type session struct {
	cfg  *Config
	log  zerolog.Logger
	ring *shmring.Ring
	st   store
	plan *syncpoint.Plan
	last *emergency.Control
	live *live
	view overview // of the open file, since its last summary

	defs  *defs
	jvm   trace.JVM
	has   bool // jvm is known
	notes []trace.Note
	begun bool // a file is open
	asked bool // the probe is to tell all definitions again

	pending  []byte // whole blocks that the store has not got yet
	info     frameInfo
	skipTo   uint64 // source position up to which the store has everything
	epochs   uint64 // in pending
	lost     trace.Gap
	ringLoss shmring.Status // loss counters as told last
	retoldAt uint64         // position before which the probe has told all definitions again since this agent resumed; 0: not known, or done
	lastGC   uint64         // number of the newest epoch, 0 while unknown: numbers that are missing were lost
	ended    bool           // END was seen
	over     Phase          // what it will be when all is put away, "": what status says
	depth    uint64         // of the last epoch
	dirty    bool           // the store took something that was not synced yet
	syncedAt time.Time
	time     uint64 // newest time of the stream

	mu     sync.Mutex // guards status
	status Status

	storms    syncpoint.Budget // of listings that full collections force
	listRatio float64          // of a listing, stored by raw

	refusedAt time.Time // told last
	rate      rate

	self     *self // what it takes of the agent; nil: nobody asks
	cpuRate  rate
	cpuNS    int64        // of the agent, so far
	cpuDepth uint64       // what agent_max_cpu wants, 0: nothing yet
	holds    atomic.Int64 // of the agent's memory, bytes, about
	letGo    atomic.Bool  // it shall end

	base, kept counters // of agents before; as the store keeps them
	keptAt     time.Time

	storm  storm
	oom    exhaustion
	share  func(used int64) (limit int64) // of max_total_size, 0: as before; nil: there is none
	cpu    func() float64                 // what compression may take; nil: as the store was opened
	shared time.Time
	freeze func(reason string) // keeps the window; nil: nobody does

	rateDepth, govDepth       uint64 // what the write rate and the budget want, 0: nothing yet
	govInterval, sampInterval uint64 // what the budgets of the probe and of sampling want, 0: nothing yet
	interval                  uint64 // of sampling, at the last pause

	limits *atomic.Pointer[Limits] // of the agent
	heeded *Limits                 // that the session has taken over
	rates  *rates                  // of max_total_write_rate

	gov      *governor.Governor // nil: no budget, or nothing is known of the JVM yet
	samp     *governor.Sampling
	tooLong  bool // a sync point, for max_sync_pause
	governed time.Time
	longest  time.Duration // that an ordinary epoch added to a pause since then

	pausing sync.Mutex // of who changes why it is paused
	paused  uint32     // why, as told last; belongs to the session's goroutine

	sampledAt time.Time // when the cost of sampling was told last

	busy      atomic.Int64 // since when it may be waiting for the disk, Unix ns; 0: it is not
	stuckTold bool         // of the agent's loop

	heldAs string // name by which the service manager keeps the ring; "": it does not

	told storeStats // belongs to the session's goroutine
}

// record empties the ring until it ends or ctx is done. The error says why reading stopped; nil after an orderly or sudden end of the JVM.
func (s *session) record(ctx context.Context) error {
	for {
		err := s.wait(ctx)
		if s.letGo.Load() && ctx.Err() == nil {
			return errLetGo
		}
		if errors.Is(err, shmring.ErrEnded) || errors.Is(err, shmring.ErrGone) {
			defer s.doing()()
			s.finish(errors.Is(err, shmring.ErrGone))
			return nil
		}
		if err != nil {
			return err
		}
		if n, err := s.ring.Backlog(); err == nil && n < smallBacklog && !s.urgent() {
			select {
			case <-ctx.Done():
			case <-time.After(gather):
			}
		}
		done := s.doing()
		err = s.work(s.step)
		done()
		if err != nil {
			return err
		}
	}
}

// wait waits for data; meanwhile what the store took is synced when its time has come.
func (s *session) wait(ctx context.Context) error {
	for {
		done := s.doing()
		s.syncDue()
		done()
		if err := s.lookPaused(); err != nil {
			return err
		}
		at := time.Now().Add(idleLook)
		if s.dirty {
			at = s.syncedAt.Add(s.cfg.SyncInterval)
		}
		until, cancel := context.WithDeadline(ctx, at)
		err := s.ring.Wait(until)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		done = s.doing()
		s.resize(s.st.Stats())
		if h, err := s.ring.Status(); err == nil {
			s.exhausted(h)
			if err := s.governIdle(h); err != nil {
				return err
			}
		}
		done()
		if s.letGo.Load() {
			return errLetGo
		}
	}
}

// exhausted takes the hint that the JVM ran out of memory, which it may survive, once a burst.
func (s *session) exhausted(h shmring.Status) {
	if !s.oom.look(time.Now(), h.Exhausted) {
		return
	}
	const text = "the heap is exhausted: an allocation failed"
	s.push(trace.EncodeMeta(trace.Meta{Notes: []trace.Note{{Time: s.time, Text: text}}}))
	s.flush()
	if s.freeze != nil {
		s.freeze(text)
	}
}

// syncDue bounds what a power loss takes.
func (s *session) syncDue() {
	now := time.Now()
	if !s.dirty || now.Sub(s.syncedAt) < s.cfg.SyncInterval {
		return
	}
	s.dirty, s.syncedAt = false, now
	if now.Sub(s.keptAt) >= keepEvery {
		s.keptAt = now
		s.keepCounters()
	}
	if err := s.st.SyncSoon(); err != nil {
		s.dirty = true
		s.log.Warn().Err(err).Msg("the disk does not keep what it took: a new file begins")
		s.set(func(st *Status) { st.StoreError = err.Error() })
	}
}

// urgent says that somebody waits for what the ring holds.
func (s *session) urgent() bool {
	st, err := s.ring.Status()
	return err != nil || st.State.Ended() || s.last.Waiting()
}

// step takes one batch through to the store and commits it.
func (s *session) step() error {
	batch, err := s.ring.Read(readBatch)
	if err != nil || len(batch.Data) == 0 {
		return err
	}
	if h, err := s.ring.Status(); err == nil && h.Capacity > 0 {
		if s.asked && h.RedefineDone >= h.Redefine {
			s.asked, s.retoldAt = false, h.Head
		}
		if h.Capacity != s.status.RingBytes {
			s.log.Info().Uint64("bytes", h.Capacity).Uint64("before", s.status.RingBytes).Msg("a larger shared ring took over")
			s.set(func(st *Status) { st.RingBytes = h.Capacity })
		}
		s.st.Queue(float64(h.Backlog()) / float64(h.Capacity))
		if s.cpu != nil {
			s.st.CPU(s.cpu())
		}
	}
	pos := batch.Start
	for b, err := range trace.Blocks(batch.Data) {
		if err != nil {
			return &shmring.ViolationError{Path: s.ring.Path(), Pos: pos, Why: "framing", Err: err}
		}
		pos += uint64(b.Size())
		if pos <= s.skipTo { // an agent before had stored it but not committed
			if lacks := s.intern(b); s.begun { // the file that this agent began may lack them
				s.pushDefs(lacks)
			}
			continue
		}
		s.info.Source = pos
		if err := s.block(b); err != nil {
			n := s.count(func(d *Drops) { d.Corrupt++ }).Corrupt
			s.log.Warn().Err(err).Uint64("pos", pos).Msg("block of the probe can not be read")
			if n >= maxCorrupt {
				return &shmring.ViolationError{Path: s.ring.Path(), Pos: pos, Why: "too many unreadable blocks", Err: err}
			}
		}
	}
	s.flush()
	if s.ring.Away() && s.lost.Reason == trace.GapStore { // what nobody adds to can wait
		if life, err := s.ring.Alive(); err == nil && (life == shmring.Ended || life == shmring.Gone) {
			return &StoreError{s.status.Dir, errors.New(s.snapshot().StoreError)}
		}
	}
	if err := s.ring.Commit(batch.End); err != nil {
		return err
	}
	return s.look()
}

// resume begins a new file of a recording that an agent before began: what its files define is known, so that what still lies in the
// ring can be read even if the JVM no longer answers.
func (s *session) resume() {
	s.begun = true // interning begins no file
	s.lastGC = s.st.Newest(func(b trace.Block) { s.intern(b) })
	s.begun, s.pending = false, nil
	if s.asked {
		s.defs.recall()
	}
	if s.has {
		s.info.Source = s.skipTo
		s.begin(nil)
		// How much was lost while nobody read shows in the collections' numbers.
		s.push(trace.EncodeGap(trace.Gap{Reason: trace.GapAway}))
		s.plan.Lost()
	}
}

// intern takes the definitions of a block that is in the store already, and gives what of them the open file lacks.
func (s *session) intern(b trace.Block) (lacks trace.Defs) {
	switch b.Kind {
	case trace.KindMeta:
		s.meta(b)
	case trace.KindDefs:
		lacks, _ = s.defs.add(b)
	}
	return lacks
}

func (s *session) block(b trace.Block) error {
	if b.Version > trace.FormatVersion { // not ours to judge: a newer reader may understand it
		s.push(b)
		return nil
	}
	switch b.Kind {
	case trace.KindMeta:
		return s.meta(b)
	case trace.KindDefs:
		out, err := s.defs.add(b)
		if err != nil {
			return err
		}
		if d, err := trace.DecodeDefs(b); err == nil { // out lacks what the file has
			s.live.defs(d.Types)
		}
		s.pushDefs(out)
		return nil
	case trace.KindSamples:
		samples, err := trace.DecodeSamples(b)
		if err != nil {
			return err
		}
		var need trace.Defs
		for i := range samples {
			s.defs.need(&need, samples[i].Frame, samples[i].Thread)
			s.stamp(samples[i].Time)
		}
		s.live.samples(samples)
		s.pushDefs(need)
		s.push(b)
		return nil
	case trace.KindEpoch:
		return s.epoch(b)
	case trace.KindSync:
		return s.sync(b)
	case trace.KindEnd:
		e, err := trace.DecodeEnd(b)
		if err != nil {
			return err
		}
		s.stamp(e.Time)
		s.ended = true
		s.push(b)
		return nil
	case trace.KindGap:
		g, err := trace.DecodeGap(b)
		if err != nil {
			return err
		}
		s.stamp(g.Time)
		s.live.unknown()
		s.push(b)
		return nil
	}
	s.push(b) // unknown kinds of our version are kept: readers skip and count them
	return nil
}

func (s *session) meta(b trace.Block) error {
	m, err := trace.DecodeMeta(b)
	if err != nil {
		return err
	}
	// The probe lost allocation sampling to another agent, or has it now.
	changed := s.begun && m.HasJVM && m.JVM.Flags != s.jvm.Flags
	if m.HasJVM {
		s.jvm, s.has = m.JVM, true
		s.depth = m.JVM.Depth
		s.live.jvm(&m.JVM)
		s.set(func(st *Status) {
			st.NoSites = m.JVM.Flags&trace.JVMNoSampling != 0
			st.VM, st.Probe, st.Interval, st.Depth = m.JVM.VM, m.JVM.Probe, m.JVM.Interval, DepthName(m.JVM.Depth)
			st.DepthAsked = st.Depth
			// An agent that comes later goes on with what another one began, and the ring's counters with it.
			if t := time.UnixMilli(int64(m.JVM.T0WallMS)); m.JVM.T0WallMS != 0 && t.Before(st.Since) {
				st.Since = t
			}
		})
	}
	for _, n := range m.Notes {
		s.log.Info().Str("note", n.Text).Msg("the probe says")
	}
	known := len(s.notes)
	for _, n := range m.Notes {
		n.Text = n.Text[:min(len(n.Text), maxNote)]
		if len(s.notes) < maxNotes && !s.noted(n) {
			s.notes = append(s.notes, n)
		}
	}
	switch {
	case !s.begun && s.has:
		s.begin(nil) // the tape begins now: what comes before the first listing is samples and pauses, and an exit before any collection leaves them
	case s.begun && (changed || len(s.notes) > known):
		s.push(trace.EncodeMeta(trace.Meta{JVM: s.jvm, HasJVM: changed, Notes: s.notes[known:]}))
	}
	return nil
}

func (s *session) noted(n trace.Note) bool {
	for _, o := range s.notes {
		if o == n {
			return true
		}
	}
	return false
}

func (s *session) epoch(b trace.Block) error {
	e, err := trace.DecodeEpoch(b)
	if err != nil {
		return err
	}
	p := &e.Pause
	s.depth = p.Depth
	if p.Flags&trace.PauseSyncFollows == 0 && p.Kind != trace.PauseWalk {
		s.longest = max(s.longest, time.Duration(p.Probe))
	}
	s.stamp(p.Start + p.Dur)
	if s.info.FirstGC == 0 {
		s.info.FirstGC = p.GC
	}
	s.info.LastGC = p.GC
	s.tellLoss(p.GC)
	s.push(b)
	s.epochs++
	s.interval = p.Interval
	s.live.epoch(e)
	total, known := s.live.total()
	s.view.epoch(e, total, known)
	if len(s.view.courses) == trace.MaxCourses {
		s.summarize(nil)
	}
	if s.storm.pause(p) && s.freeze != nil {
		s.freeze("a GC storm begins: full collections take more than half of the time")
	}
	if p.Kind != trace.PauseWalk {
		s.plan.Natural()
		s.last.Natural()
	}
	s.set(func(st *Status) {
		st.Collections++
		st.Missed += p.Missed()
		st.LastGC, st.Depth, st.Interval = p.GC, DepthName(p.Depth), p.Interval
	})
	if (p.Depth == trace.DepthSamples || s.plan.Blind()) && s.plan.Wanted() { // nothing is listed: a file may begin anywhere
		s.summarize(nil)
		s.begin(nil)
	}
	return nil
}

func (s *session) sync(b trace.Block) error {
	y, err := trace.DecodeSync(b)
	if err != nil {
		return err
	}
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
	s.live.sync(y)
	// A session that has reconnected, and whose definitions are not here yet, can list in the old file only.
	if s.has && s.plan.Rotate() {
		before := s.info.Source
		s.info.Source = before - uint64(b.Size())
		s.flush()
		s.view.sync(y)
		s.summarize(y)
		s.info.Source, s.info.FirstGC, s.info.LastGC = before, y.GC, y.GC
		s.stamp(y.Time)
		s.begin(&syncBlock{b, y})
		return nil
	}
	if y.Reason == trace.SyncFull && !s.storms.Allow(y.Time, int64(float64(b.Size())*s.listRatio)) {
		s.skipListing(y)
		return nil
	}
	// In a frame of its own: if the ring can not hold it no epoch goes with it.
	was := s.st.Stats().Active
	before := s.info.Source
	s.info.Source = before - uint64(b.Size())
	s.flush()
	s.info.Source, s.info.FirstGC, s.info.LastGC, s.info.Listing = before, y.GC, y.GC, true
	s.stamp(y.Time)
	if s.has {
		s.pushDefs(s.needSync(y))
	}
	s.push(b)
	switch ok := s.flush(); {
	case !s.has:
	case ok:
		s.plan.Synced()
		if grew := s.st.Stats().Active - was; grew > 0 {
			s.listRatio = float64(grew) / float64(b.Size())
		}
		s.view.sync(y)
		s.summarize(y)
	case !s.plan.Blind():
		s.plan.Refused()
	}
	return nil
}

// summarize puts away what is pending, and behind it the summary of what the open file tells since its last one. One that the store refuses is
// no loss: it says nothing that the file does not say.
func (s *session) summarize(y *trace.Sync) {
	s.flush()
	sum := s.view.take(y, s.live.est)
	if sum == nil || !s.begun {
		return
	}
	out := trace.AppendBlock(nil, trace.EncodeSummary(sum))
	if s.st.Append(out, frameInfo{Source: s.info.Source, FirstGC: sum.First, LastGC: sum.Last, T0: s.time, T1: s.time, Summary: true}) == nil {
		s.dirty = true
	}
}

// skipListing writes what a listing would have shown in the large instead of it.
func (s *session) skipListing(y *trace.Sync) {
	s.view.unlisted = true
	s.set(func(st *Status) { st.ListingsSkipped++ })
	s.push(trace.EncodeMeta(trace.Meta{Notes: []trace.Note{{Time: y.Time, Text: fmt.Sprintf(
		"collection %d: one full collection follows the other, and their listings have taken what they may: this one is left out (%d objects, %d bytes). %s",
		y.GC, y.Objects, y.Bytes, summary(y, s.live.types, s.defs, summaryTypes))}}}))
}

func (s *session) stamp(t uint64) {
	if s.info.T0 == 0 || t < s.info.T0 {
		s.info.T0 = t
	}
	s.info.T1 = max(s.info.T1, t)
	s.time = max(s.time, t)
}

// finish tells how the JVM went. gone: without goodbye.
func (s *session) finish(gone bool) {
	h, err := s.ring.Status()
	if err == nil {
		s.tellLoss(0)
		s.flush()
		s.exhausted(h)
		s.sampledAt = time.Time{}
		s.tellSampling(h)
		s.show(h, s.st.Stats())
	}
	if gone {
		s.over = GonePhase
	}
}

func (s *session) set(f func(*Status)) {
	s.mu.Lock()
	f(&s.status)
	s.mu.Unlock()
}

func (s *session) count(f func(*Drops)) Drops {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.status.Dropped)
	return s.status.Dropped
}

func (s *session) snapshot() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status
	if d := s.stuck(); d > 0 {
		st.StoreError = notAnswered + d.String()
	}
	return st
}
