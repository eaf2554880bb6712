package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

// switchEvery is how often the host's switch is looked at. Probes look at it by themselves, twice a second, where they see the same file.
const switchEvery = 250 * time.Millisecond

// heedSwitch pauses every session while the host's switch is set. It returns when ctx is done.
func (a *Agent) heedSwitch(ctx context.Context) {
	t := time.NewTicker(switchEvery)
	defer t.Stop()
	for {
		// What can not be looked at is not there: a switch that a fault could turn on would lose recordings.
		_, err := os.Stat(a.cfg.Switch)
		if on := err == nil; on != a.off.Load() {
			a.off.Store(on)
			if on {
				a.cfg.Log.Warn().Str("switch", a.cfg.Switch).Msg("the host's switch is set: nothing is recorded and no JVM is attached to")
			} else {
				a.cfg.Log.Warn().Str("switch", a.cfg.Switch).Msg("the host's switch is gone: recording goes on")
			}
			if _, err := a.eachOf(operator, "", func(s *session) error { return s.setPause(shmring.PauseSwitch, on) }); err != nil {
				a.cfg.Log.Warn().Err(err).Msg("the host's switch could not be told to every probe")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// Off says whether the host's switch is set: nothing may be attached to.
func (a *Agent) Off() bool { return a.off.Load() }

// Pause stops recording of the session whose ID is id, or of all for "", until Resume. It returns how many were asked; their probes obey
// within a tenth of a second, and an agent that comes later knows it.
func (a *Agent) Pause(id string) (int, error) { return a.pauseBy(operator, id) }

// Resume lets a session, or all for "", go on. What the host's switch stopped stays so.
func (a *Agent) Resume(id string) (int, error) { return a.resumeBy(operator, id) }

// operator is this program itself.
var operator = Caller{Name: "agent", UID: -1, Role: Operator}

// pauseBy is Pause, of those sessions that c may pause.
func (a *Agent) pauseBy(c Caller, id string) (int, error) {
	why := uint32(shmring.PauseAsked)
	if c.Role != Operator {
		why = shmring.PauseOwner
	}
	return a.eachOf(c, id, func(s *session) error { return s.setPause(why, true) })
}

// resumeBy is Resume, of those sessions that c may resume. What a JVM's user has paused goes on when that user says so, or an operator who names
// it. What an operator has paused its user can not resume.
func (a *Agent) resumeBy(c Caller, id string) (int, error) {
	why := uint32(shmring.PauseAsked)
	switch {
	case c.Role != Operator:
		why = shmring.PauseOwner
	case id != "":
		why |= shmring.PauseOwner
	}
	return a.eachOf(c, id, func(s *session) error {
		err := s.setPause(why, false)
		if err != nil || c.Role == Operator || id == "" {
			return err
		}
		if h, err := s.ring.Status(); err == nil && h.PauseWhy&shmring.PauseAsked != 0 {
			return fmt.Errorf("%s was paused by root or a member of the group %s: it goes on when they resume it: %w", id, Group, os.ErrPermission)
		}
		return nil
	})
}

// eachOf calls f for the session whose ID is id, or all for "", as far as c controls them. What c does not control does not exist for it.
func (a *Agent) eachOf(c Caller, id string, f func(*session) error) (n int, err error) {
	a.mu.Lock()
	var all []*session
	for _, e := range a.sessions {
		if e.s != nil && (id == "" || e.s.status.ID == id) {
			all = append(all, e.s)
		}
	}
	a.mu.Unlock()
	all = slices.DeleteFunc(all, func(s *session) bool { return !c.controls(s) })
	if id != "" && len(all) == 0 {
		return 0, fmt.Errorf("recording %q: %w", id, os.ErrNotExist)
	}
	var errs []error
	for _, s := range all {
		if err := f(s); err != nil {
			errs = append(errs, err)
			continue
		}
		n++
	}
	return n, errors.Join(errs...)
}

// setPause adds a reason for pausing, or takes it away.
func (s *session) setPause(why uint32, on bool) error {
	s.pausing.Lock()
	defer s.pausing.Unlock()
	h, err := s.ring.Status()
	if err != nil {
		return err
	}
	want := h.PauseWhy &^ why
	if on {
		want = h.PauseWhy | why
	}
	if want == h.PauseWhy {
		return nil
	}
	return s.ring.SetPause(want)
}

// lookPaused tells status and trace when recording stops and goes on.
func (s *session) lookPaused() error {
	h, err := s.ring.Status()
	if err != nil {
		return err
	}
	why := h.PauseWhy
	if h.State == shmring.StatePaused && why == 0 { // before the agent has seen it, or where the agent does not see it
		why = shmring.PauseSwitch
	}
	if h.State != shmring.StatePaused && h.State != shmring.StateRecording || (h.State == shmring.StatePaused) != (why != 0) {
		return nil // the probe has not obeyed yet
	}
	if why == s.paused {
		return nil
	}
	s.paused = why
	text := "recording goes on"
	if why != 0 {
		text = "paused: " + pausedWhy(why, s.status.UID)
	}
	s.log.Info().Msg(text)
	if s.has {
		s.push(trace.EncodeMeta(trace.Meta{Notes: []trace.Note{{Time: max(s.time, s.now(h)), Text: text}}}))
		s.flush()
	}
	s.show(h, s.st.Stats())
	return nil
}

// now is the time of the stream, ns since the probe began: 0 while nothing is known of the JVM.
func (s *session) now(h shmring.Status) uint64 {
	if !s.has || s.jvm.T0WallMS == 0 {
		return 0
	}
	return uint64(max(time.Since(time.UnixMilli(int64(s.jvm.T0WallMS))), 0))
}

// pausedWhy says why a JVM of the user uid is paused.
func pausedWhy(why uint32, uid int) string {
	switch {
	case why&shmring.PauseSwitch != 0, why == 0:
		return "the host's switch is set"
	case why&shmring.PauseOwner != 0:
		return "asked for by " + userName(uid)
	}
	return "asked for"
}
