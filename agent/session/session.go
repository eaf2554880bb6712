package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heapcam/heapcam/agent/definitions"
	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

const (
	// readBatch is how much a session takes from the ring at once, bytes; a larger block is read alone.
	readBatch = 1 << 20
	// idleEvery is how often a session without data checks its part of max_total_size, whether it is paused and
	// whether the JVM ran out of memory.
	idleEvery = time.Second
	// maxCorrupt is how many undecodable blocks a producer may send before its ring is put into quarantine.
	maxCorrupt = 16
)

// Session records one JVM. New makes it, Run is called once; Status, SetPause, Evict and the other exported methods are
// safe for concurrent use. Everything but shared, pause.mu and refs.mu belongs to the goroutine of Run.
type Session struct {
	cfg   Config
	hooks Hooks
	ring  *shmring.Ring
	shared

	in     stream // what the JVM's stream has said
	defs   *definitions.Tables
	losses losses   // what the ring or the store lost
	syncs  schedule // when sync points are requested and what is listed
	heap   heapView // live objects, the next summary, profiles
	out    writer   // pending blocks, open file
	steer  steering // depth, interval and compression within all limits
	alarms alarms   // storms and memory exhaustion
	pause  pauseControl
	refs   references // the reference listing that is being stored, and those that nobody asked for
	tally  tally      // counters over all agents
}

// Hooks are what a session asks of its agent while it runs. All may be nil. They are called by the session's goroutine
// and must not block it.
type Hooks struct {
	// Share takes note of the bytes that the ring folder occupies, and returns its limit, bytes; 0: as before.
	Share func(used int64) (limit int64)
	// CPU returns what compression may take, CPUs on average.
	CPU func() float64
	// Freeze keeps the present window as an incident. listed is what became of its reference listing.
	Freeze func(cause ringstore.Cause, reason string, listed ringstore.Listed)
	// Profile takes a profile, every Config.ProfileEvery.
	Profile func(*Profile)
	// Table takes the rows of tables, every Config.TableEvery.
	Table func(*Table)
}

// Run empties the ring until it ends or ctx is done, and closes the store. It returns nil after an orderly or sudden
// end of the JVM: everything is stored then, and the ring's file is removed. Other errors say why reading stopped:
// quota.ErrEvicted and *StoreError, after which the same ring may be recorded again later; *shmring.ViolationError,
// after which the ring must not be read any further; the error of ctx. The ring stays open: Close closes it.
func (s *Session) Run(ctx context.Context, hooks Hooks) error {
	s.hooks = hooks
	logs.Write(&s.log, logs.RecordingStarted, logs.Path.Of(s.Dir()))
	err := s.guarded(ctx)
	s.refs.end()
	s.freezeWaiting(time.Now(), true)
	s.lastTable()
	s.report(ctx, err)
	closing := s.doing()
	s.keepCounters()
	if cerr := s.out.st.Close(); cerr != nil {
		logs.Write(&s.log, logs.NotClosed, logs.Err.Of(cerr))
	}
	closing()
	stats := s.out.st.Stats() // what was allocated ahead was given back
	s.set(func(st *Status) { st.TraceBytes, st.Files = stats.Bytes, stats.Files })
	if err == nil { // drained: the file is memory that nobody needs any more
		if uerr := s.ring.Unlink(); uerr != nil {
			logs.Write(&s.log, logs.RingStays, logs.Err.Of(uerr))
		}
		if s.in.over != "" {
			s.set(func(st *Status) { st.Phase = s.in.over })
		}
		s.logEnd()
	}
	return err
}

// logEnd logs how the recording ended.
func (s *Session) logEnd() {
	switch st := s.Status(); st.Phase {
	case Refused:
		logs.Write(&s.log, logs.JVMRefused, logs.Cause.Of(st.Reason))
	case ProbeStopped:
		logs.Write(&s.log, logs.ProbeStopped, logs.Cause.Of(st.Reason), logs.Collections.Of(st.Collections))
	default:
		logs.Write(&s.log, logs.RecordingEnded, logs.Phase.Of(string(st.Phase)), logs.Cause.Of(st.Reason),
			logs.Collections.Of(st.Collections))
	}
}

// Close closes the ring and leaves the shared limits, after Run.
func (s *Session) Close() {
	s.ring.Close()
	s.steer.leave()
}

// report logs why recording stopped, and puts it into status.
func (s *Session) report(ctx context.Context, err error) {
	var bad *shmring.ViolationError
	var full *StoreError
	ring := s.ring.Path()
	switch {
	case err == nil:
	case ctx.Err() != nil:
		s.set(func(st *Status) { st.Phase = Stopped })
	case errors.Is(err, quota.ErrEvicted):
		logs.Write(&s.log, logs.RecordingEvicted, logs.Path.Of(ring))
	case errors.As(err, &full):
		logs.Write(&s.log, logs.RingWaits, logs.Err.Of(err), logs.Path.Of(ring))
	case errors.As(err, &bad):
		s.set(func(st *Status) { st.Phase, st.Reason = Quarantined, err.Error() })
		logs.Write(&s.log, logs.RingQuarantined, logs.Err.Of(err), logs.Path.Of(ring))
	default:
		s.set(func(st *Status) { st.Phase, st.Reason = Stopped, err.Error() })
		logs.Write(&s.log, logs.RecordingStopped, logs.Err.Of(err), logs.Path.Of(ring))
	}
}

// guarded protects the other JVMs: a defect of heapcam that one producer triggers must not end the agent.
func (s *Session) guarded(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error while reading %s: %v", s.ring.Path(), r)
		}
	}()
	return s.record(ctx)
}

// record empties the ring. The error says why reading stopped; nil after an orderly or sudden end of the JVM.
func (s *Session) record(ctx context.Context) error {
	for {
		err := s.wait(ctx)
		if s.evict.Load() && ctx.Err() == nil {
			return quota.ErrEvicted
		}
		if errors.Is(err, shmring.ErrEnded) || errors.Is(err, shmring.ErrGone) {
			defer s.doing()()
			s.finish(errors.Is(err, shmring.ErrGone))
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.gather(ctx); err != nil {
			return err
		}
		done := s.doing()
		err = s.charged(s.step)
		s.profileDue(time.Now())
		s.tableDue(time.Now())
		done()
		if err != nil {
			return err
		}
	}
}

// wait waits for data; meanwhile what the store took is synced when its time has come.
func (s *Session) wait(ctx context.Context) error {
	for {
		done := s.doing()
		s.syncDue()
		done()
		h, err := s.ring.Status()
		if err != nil {
			return err
		}
		s.notePause(h)
		s.noteClasses(h)
		at := time.Now().Add(idleEvery)
		if s.out.dirty {
			at = s.out.syncedAt.Add(s.cfg.SyncInterval)
		}
		until, cancel := context.WithDeadline(ctx, at)
		err = s.ring.Wait(until)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		done = s.doing()
		err = s.idle()
		s.profileDue(time.Now())
		s.tableDue(time.Now())
		done()
		if err != nil {
			return err
		}
		if s.evict.Load() {
			return quota.ErrEvicted
		}
	}
}

// idle does what does not wait for data. What the next epoch may cost grows meanwhile.
func (s *Session) idle() error {
	s.resize(s.out.st.Stats())
	h, err := s.ring.Status()
	if err != nil { // Wait returns it
		return nil
	}
	s.noteExhaustion(h)
	s.alarms.kills.read(time.Now(), s.process)
	if h.State == shmring.StatePaused {
		return nil
	}
	s.listReferences(&h, time.Now())
	return errors.Join(s.applyLimits(), s.limitCPU(h), s.governIdle(h), s.wake(h),
		s.syncs.step(time.Now(), max(s.in.time, s.in.now()), h, s.out.st.Stats()))
}

// step stores one batch and commits it. The ring's status is read once, behind the batch's data:
// its counters include whatever was lost before the last block of the batch.
func (s *Session) step() error {
	batch, err := s.ring.Read(readBatch)
	if err != nil || len(batch.Data) == 0 {
		return err
	}
	h, unknown := s.ring.Status()
	if unknown == nil {
		s.sizes(h)
	} else {
		h = s.losses.reported // so that nothing more counts as lost
	}
	if err := s.blocks(batch, h); err != nil {
		return err
	}
	s.flush()
	s.beginAgain()
	if s.ring.Away() && s.losses.pending() { // what nobody adds to can wait
		if life, err := s.ring.Alive(); err == nil && (life == shmring.Ended || life == shmring.Gone) {
			return &StoreError{s.Dir(), errors.New(s.Status().StoreError)}
		}
	}
	if err := s.ring.Commit(batch.End); err != nil {
		return err
	}
	if unknown != nil {
		return unknown
	}
	h.Tail = batch.End
	return s.observe(h)
}

// sizes notes the ring's size and fill.
func (s *Session) sizes(h shmring.Status) {
	if h.Capacity == 0 {
		return
	}
	if s.in.redefining && h.RedefineDone >= h.Redefine {
		s.in.redefining, s.in.redefinedAt = false, h.Head
	}
	if before := s.status.RingBytes; h.Capacity != before {
		logs.Write(&s.log, logs.RingGrown, logs.Bytes.Of(h.Capacity), logs.Before.Of(before))
		s.set(func(st *Status) { st.RingBytes = h.Capacity })
	}
	s.out.st.Queue(float64(h.Backlog()) / float64(h.Capacity))
	if s.hooks.CPU != nil {
		s.out.st.CPU(s.hooks.CPU())
	}
}

// blocks takes in the blocks of a batch.
func (s *Session) blocks(batch shmring.Batch, h shmring.Status) error {
	pos := batch.Start
	defer func() { s.out.hand = nil }()
	for b, err := range trace.Blocks(batch.Data) {
		if err != nil {
			return &shmring.ViolationError{Path: s.ring.Path(), Pos: pos, Why: "framing", Err: err}
		}
		start := pos
		pos += uint64(b.Size())
		if pos <= s.out.skipTo { // an agent before had stored it but not committed
			s.stored(b)
			continue
		}
		s.out.pos = pos
		s.out.hand = batch.Data[start-batch.Start : pos-batch.Start]
		if err := s.block(b, start, h); err != nil {
			n := s.count(func(d *Drops) { d.Corrupt++ }).Corrupt
			logs.Write(&s.log, logs.BlockUnreadable, logs.Err.Of(err), logs.Offset.Of(pos))
			if n >= maxCorrupt {
				why := "too many blocks that cannot be decoded"
				return &shmring.ViolationError{Path: s.ring.Path(), Pos: pos, Why: why, Err: err}
			}
		}
	}
	return nil
}
