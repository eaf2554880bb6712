package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/heapcam/heapcam/emergency"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/syncpoint"
	"github.com/heapcam/heapcam/trace"
)

// look compares what the store holds with what it may hold, and asks the probe for what is needed.
func (s *session) look() error {
	h, err := s.ring.Status()
	if err != nil {
		return err
	}
	stats := s.st.Stats()
	if s.resize(stats) {
		stats = s.st.Stats()
	}
	if h.State == shmring.StatePaused { // nothing comes, so nothing is asked for
		s.show(h, stats)
		return nil
	}
	if err := errors.Join(s.heed(), s.thrift(h)); err != nil {
		return fmt.Errorf("ask the probe: %w", err)
	}
	if want, change := s.rate.look(time.Now(), stats.Written, s.depth); change {
		s.log.Warn().Str("depth", DepthName(want)).Int64(s.rate.told.key, s.rate.told.limit).Msg("the depth is changed for the sake of the disk")
		s.rateDepth = want
		s.noteDepth(fmt.Sprintf("depth %s: %s leaves it %d bytes a second", DepthName(want), s.rate.told.key, s.rate.told.limit))
		if err := s.setDepth(); err != nil {
			return fmt.Errorf("ask the probe: %w", err)
		}
	}
	if s.plan.Next(syncpoint.Store{Active: stats.Active, Rotate: stats.Rotate}) {
		_, err = s.ring.RequestSync()
	} else {
		_, err = s.last.Look(emergency.View{
			Due: s.plan.Due(), Room: stats.Room, Reserve: s.plan.Reserve(), Answered: h.EmergencyDone, Now: time.Now(),
		})
	}
	if err != nil {
		return fmt.Errorf("ask the probe: %w", err)
	}
	s.tellSampling(h)
	if err := errors.Join(s.govern(h), s.governSampling(h)); err != nil {
		return fmt.Errorf("ask the probe: %w", err)
	}
	s.exhausted(h)
	if h.SyncTooLong != s.tooLong {
		s.tooLong = h.SyncTooLong
		text := fmt.Sprintf("a sync point would take %v, which max_sync_pause allows again", time.Duration(h.SyncPredicted).Round(time.Millisecond))
		if s.tooLong {
			text = fmt.Sprintf("depth samples: a sync point would take %v, more than max_sync_pause", time.Duration(h.SyncPredicted).Round(time.Millisecond))
		}
		s.log.Warn().Msg(text)
		s.noteDepth(text)
	}
	s.show(h, stats)
	return nil
}

// tellSampling notes once a minute what sampling has cost so far, since epochs have their own cost in them, samples do not; and what did not fit
// into the table of frames.
func (s *session) tellSampling(h shmring.Status) {
	now := time.Now()
	if !s.has || now.Sub(s.sampledAt) < sampledEvery {
		return
	}
	s.sampledAt = now
	at := max(s.time, s.now(h))
	notes := []trace.Note{{Time: at, Text: fmt.Sprintf("%s%d ns", samplingNote, h.SampleNS)}}
	if h.SitesCut > 0 {
		notes = append(notes, trace.Note{Time: at, Text: fmt.Sprintf("%sthe table of frames was full: %d samples so far are told by the callers that were known, %d least used frames have made room",
			trace.NoteSites, h.SitesCut, h.SitesFolded)})
	}
	s.push(trace.EncodeMeta(trace.Meta{Notes: notes}))
	s.flush()
}

// resize makes the ring as large as max_total_size lets it be.
func (s *session) resize(stats storeStats) bool {
	now := time.Now()
	if s.share == nil || now.Sub(s.shared) < time.Second {
		return false
	}
	s.shared = now
	limit := s.share(stats.Bytes)
	if limit == 0 {
		return false
	}
	if err := s.st.Resize(s.cfg.sizeFor(limit)); err != nil {
		s.set(func(st *Status) { st.StoreError = err.Error() })
	}
	return true
}

func (s *session) show(h shmring.Status, stats storeStats) {
	phase, reason := Recording, ""
	switch h.State {
	case shmring.StatePaused:
		phase, reason = Paused, pausedWhy(h.PauseWhy, s.status.UID)
	case shmring.StateRefused:
		phase, reason = Refused, h.Reason
	case shmring.StateGaveUp:
		phase, reason = GaveUp, h.Reason
	case shmring.StateDetached, shmring.StateGoodbye:
		s.over = EndedPhase // told when the recording is closed and the ring has gone: somebody may wait to attach again
	}
	q, em := s.live.quality(), s.last.Stats()
	s.tell(stats)
	s.set(func(st *Status) {
		st.Phase, st.Reason = phase, reason
		if h.State == shmring.StateDetached && st.DetachedBy != "" {
			st.Reason = "detached by " + st.DetachedBy
		}
		if st.VM == "" {
			st.VM = h.JVM
		}
		st.Samples, st.LiveBytes, st.Backlog = h.Samples, h.LiveBytes, h.Backlog()
		st.SitesCut, st.SitesFolded = h.SitesCut, h.SitesFolded
		st.PredictedSyncNS = h.SyncPredicted
		st.ProbeNS, st.PauseNS, st.SampleNS = h.ProbeNS, h.PauseNS, h.SampleNS
		st.UpNS = uint64(max(time.Since(st.Since), 0))
		st.Dropped.FailedEpochs, st.Dropped.Definitions = h.EpochsFailed, s.base.Definitions+s.defs.dropped+s.defs.missing
		st.TraceBytes, st.Files, st.GuaranteeMet = stats.Bytes, stats.Files, stats.Guarantee
		st.WrittenBytes = stats.Written
		st.TraceLimit, st.Deviation, st.DiskFull, st.NeededTraceSize = stats.Limit, stats.Deviation, stats.Capped, stats.Needed
		st.FilesEvicted, st.SyncPointsCut, st.StoreFaults = s.base.FilesEvicted+stats.Evicted, s.base.SyncPointsCut+stats.Cut, s.base.StoreFaults+stats.Faults
		st.HeldBytes, st.ForeignFiles = stats.Held, stats.Foreign
		st.Emergencies, st.EmergenciesUnanswered = s.base.Emergencies+em.Sent, s.base.EmergenciesUnanswered+em.TimedOut
		st.Quality = q
		st.AgentBytes = s.holds.Load()
	})
}

// tell logs what has changed about the store that an operator should know.
func (s *session) tell(now storeStats) {
	was := s.told
	s.told = now
	switch {
	case now.Capped && !was.Capped:
		s.log.Warn().Int64("bytes", now.Bytes).Msg("the disk is full or keep_free is reached: the ring goes on inside the space that it has")
	case was.Capped && !now.Capped:
		if s.plan.Blind() {
			s.plan.Retry()
		}
		s.log.Info().Int64("limit", now.Limit).Msg("the disk has room again: the ring may grow")
	}
	if now.Deviation > was.Deviation && now.Deviation > s.cfg.Deviation {
		s.log.Warn().Float64("deviation", now.Deviation).Int64("file", now.Target).Msg("listings are large: ring files grow to four of them, and the window varies more than configured")
	}
	if was.Needed > 0 && now.Needed == 0 {
		s.log.Info().Msg("listings fit again")
	}
}
