package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/emergency"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

// sampledEvery is how often the cost of sampling is written into the recording.
const sampledEvery = time.Minute

// observe compares what the store holds with what it may hold, and requests from the probe what is needed. h is the
// ring's status of the batch.
func (s *Session) observe(h shmring.Status) error {
	stats := s.out.st.Stats()
	if s.resize(stats) {
		stats = s.out.st.Stats()
	}
	if h.State == shmring.StatePaused { // nothing comes, so nothing is asked for
		s.show(h, stats)
		return nil
	}
	if err := errors.Join(s.applyLimits(), s.limitCPU(h)); err != nil {
		return fmt.Errorf("ask the probe: %w", err)
	}
	if err := s.limitWrites(stats.Written); err != nil {
		return fmt.Errorf("ask the probe: %w", err)
	}
	if err := s.syncs.ask(time.Now(), h, stats, s.ring.RequestSync); err != nil {
		return fmt.Errorf("ask the probe: %w", err)
	}
	if err := s.syncs.step(time.Now(), max(s.in.time, s.in.now()), h, stats); err != nil {
		return fmt.Errorf("ask the probe: %w", err)
	}
	s.noteSampling(h)
	s.noteFootprint(false)
	s.alarms.kills.read(time.Now(), s.process)
	if err := errors.Join(s.govern(h), s.governSampling(h)); err != nil {
		return fmt.Errorf("ask the probe: %w", err)
	}
	s.noteExhaustion(h)
	s.listReferences(&h, time.Now())
	if s.syncs.pauseChanged(h) {
		s.noteSyncPause(h)
	}
	s.show(h, stats)
	return nil
}

// noteSyncPause logs and records that sync points have become too long for max_sync_pause, or no longer are.
func (s *Session) noteSyncPause(h shmring.Status) {
	d := time.Duration(h.SyncPredicted).Round(time.Millisecond)
	if h.SyncTooLong {
		logs.Write(&s.log, logs.SyncTooLong, logs.Pause.Of(d))
		s.noteDepth(fmt.Sprintf("depth samples: a sync point would take %s, more than max_sync_pause", ui.Duration(d)))
		return
	}
	logs.Write(&s.log, logs.SyncShort, logs.Pause.Of(d))
	s.noteDepth(fmt.Sprintf("a sync point would take %s, which max_sync_pause allows again", ui.Duration(d)))
}

// noteExhaustion reports that the JVM ran out of memory, which it may survive, once a burst. If a storm has left the
// newest listing out, it asks for a stop for one first.
func (s *Session) noteExhaustion(h shmring.Status) {
	now := time.Now()
	s.freezeWaiting(now, false)
	if !s.alarms.oom.observe(now, h.Exhausted) {
		return
	}
	s.remark(trace.Meta{Exhausted: []trace.Exhausted{{Time: s.in.time, Failed: h.Exhausted}}})
	s.noteFootprint(true)
	heap := s.alarms.stale && s.listingComes(h, now) // the probe does this first
	s.alarm(now, &h, ringstore.CauseExhausted, trace.Exhausted{}.String(), heap)
}

// listingComes asks for a stop for a listing and reports whether one can be expected: a stop was sent, now or before,
// or the JVM has ended and what it wrote last is not read yet.
func (s *Session) listingComes(h shmring.Status, now time.Time) bool {
	if h.State.Ended() {
		return true
	}
	_, err := s.syncs.emergency.Step(emergency.View{Answered: h.EmergencyDone, Now: now})
	return err == nil && s.syncs.emergency.Waiting()
}

// noteSampling says once a minute what sampling has cost so far, since epochs have their own cost in them, samples do
// not; and what did not fit into the table of frames.
func (s *Session) noteSampling(h shmring.Status) {
	now := time.Now()
	if !s.in.known || now.Sub(s.in.sampledAt) < sampledEvery {
		return
	}
	s.in.sampledAt = now
	at := max(s.in.time, s.in.now())
	m := trace.Meta{Sampling: []trace.Sampling{{Time: at, NS: h.SampleNS}}}
	if h.SitesCut > 0 {
		m.SitesCut = []trace.SitesCut{{Time: at, Samples: h.SitesCut, Folded: h.SitesFolded}}
	}
	s.remark(m)
}

// resize makes the ring folder as large as max_total_size lets it be, once a second.
func (s *Session) resize(stats ringstore.Stats) bool {
	now := time.Now()
	if s.hooks.Share == nil || now.Sub(s.out.resizedAt) < time.Second {
		return false
	}
	s.out.resizedAt = now
	used := stats.Bytes
	if stats.Needed > 0 { // a sync point did not fit: ask for more at once
		used = max(used, stats.Limit)
	}
	limit := s.hooks.Share(used)
	if limit == 0 {
		return false
	}
	if err := s.out.st.Resize(quota.TraceSize(limit, s.cfg.MaxTraceSize, s.cfg.Deviation)); err != nil {
		s.set(func(st *Status) { st.StoreError = err.Error() })
	}
	return true
}

// show puts what ring and store say into status.
func (s *Session) show(h shmring.Status, stats ringstore.Stats) {
	phase, reason := Recording, ""
	switch h.State {
	case shmring.StatePaused:
		phase, reason = Paused, pausedWhy(h.PauseWhy, s.UID())
	case shmring.StateRefused:
		phase, reason = Refused, h.Reason
	case shmring.StateGaveUp:
		phase, reason = ProbeStopped, h.Reason
	case shmring.StateDetached, shmring.StateGoodbye:
		// Status says so when the recording is closed and the ring has gone: somebody may wait to attach again.
		s.in.over = EndedPhase
	}
	q, em := s.heap.live.quality(time.Now()), s.syncs.emergency.Stats()
	s.logStore(stats)
	s.set(func(st *Status) {
		st.Phase, st.Reason = phase, reason
		if h.State == shmring.StateDetached && st.DetachedBy != "" {
			st.Reason = "detached by " + st.DetachedBy
		}
		if st.VM == "" {
			st.VM = h.JVM
		}
		st.fromRing(h)
		st.fromStore(stats, &s.tally.base)
		st.Dropped.Definitions = s.tally.base.Definitions + s.defs.Dropped + s.defs.Missing
		st.Emergencies = s.tally.base.Emergencies + em.Sent
		st.EmergenciesUnanswered = s.tally.base.EmergenciesUnanswered + em.TimedOut
		st.Quality = q
		st.AgentBytes = s.bytes.Load()
	})
}

// fromRing takes over what the probe counts.
func (st *Status) fromRing(h shmring.Status) {
	st.Samples, st.LiveBytes, st.Backlog = h.Samples, h.LiveBytes, h.Backlog()
	st.SitesCut, st.SitesFolded = h.SitesCut, h.SitesFolded
	st.PredictedSyncNS = h.SyncPredicted
	st.ProbeNS, st.PauseNS, st.SampleNS, st.HelpersNS = h.ProbeNS, h.PauseNS, h.SampleNS, h.HelpersNS
	st.UpNS = uint64(max(time.Since(st.Since), 0))
	st.Dropped.FailedEpochs = h.EpochsFailed
}

// fromStore takes over what the store counts, beside what agents before have counted.
func (st *Status) fromStore(s ringstore.Stats, base *counters) {
	st.TraceBytes, st.Files, st.GuaranteeMet = s.Bytes, s.Files, s.Guarantee
	st.WrittenBytes = s.Written
	st.TraceLimit, st.Deviation, st.DiskFull, st.NeededTraceSize = s.Limit, s.Deviation, s.Capped, s.Needed
	st.FilesEvicted = base.FilesEvicted + s.Evicted
	st.SyncPointsCut = base.SyncPointsCut + s.Cut
	st.StoreFaults = base.StoreFaults + s.Faults
	st.HeldBytes, st.ForeignFiles = s.HeldBytes, s.Foreign
}

// goneText says that somebody else has removed n files of the recording in dir.
func goneText(dir string, n uint64) string {
	return fmt.Sprintf("%s was removed, moved or cut while heapcam recorded into it: %s lost, and the recording began "+
		"anew", dir, ui.Plural(n, "ring file"))
}

// logStore logs what has changed about the store that an operator should know.
func (s *Session) logStore(now ringstore.Stats) {
	was := s.out.logged
	s.out.logged = now
	if n := now.Gone - was.Gone; n > 0 {
		logs.Write(&s.log, logs.RecordingGone, logs.Path.Of(s.Dir()), logs.Files.Of(n))
		s.set(func(st *Status) { st.StoreError = goneText(s.Dir(), uint64(n)) })
	}
	switch {
	case now.Capped && !was.Capped:
		logs.Write(&s.log, logs.RingCapped, logs.Bytes.Of(now.Bytes), logs.Path.Of(s.Dir()))
	case was.Capped && !now.Capped:
		if s.syncs.plan.Blind() {
			s.syncs.plan.Retry()
		}
		logs.Write(&s.log, logs.RingUncapped, logs.Limit.Of(now.Limit))
	}
	if now.Deviation > was.Deviation && now.Deviation > s.cfg.Deviation {
		logs.Write(&s.log, logs.FilesLonger, logs.Deviation.Of(now.Deviation), logs.Bytes.Of(now.Target))
	}
	if was.Needed > 0 && now.Needed == 0 {
		logs.Write(&s.log, logs.SyncFits)
		s.syncs.tooSmall = told{}
	}
}
