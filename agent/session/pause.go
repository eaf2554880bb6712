package session

import (
	"sync"
	"time"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/shmring"
)

// pauseControl keeps why a JVM is paused: a set of reasons in the ring, which outlives the agent.
type pauseControl struct {
	mu    sync.Mutex // of those who change the reasons
	noted uint32     // reasons as noted last; belongs to the session's goroutine
	// since when the probe is paused without a reason; it obeys a tenth of a second after the last one has gone
	unasked time.Time
}

// obeysWithin is more than a probe takes to obey.
const obeysWithin = 500 * time.Millisecond

// change adds a reason to those of the ring, or takes it away.
func (p *pauseControl) change(ring pauser, why uint32, on bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, err := ring.Status()
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
	return ring.SetPause(want)
}

// pauser is what of a shared ring keeps the reasons.
type pauser interface {
	Status() (shmring.Status, error)
	SetPause(why uint32) error
}

// changed returns the reasons in force, 0: not paused, and whether they differ from those noted last. They do only once
// the probe has obeyed.
func (p *pauseControl) changed(h shmring.Status, now time.Time) (why uint32, changed bool) {
	why = h.PauseWhy
	paused := h.State == shmring.StatePaused
	switch {
	case !paused || why != 0:
		p.unasked = time.Time{}
	case p.unasked.IsZero():
		p.unasked = now
		return why, false
	case now.Sub(p.unasked) < obeysWithin:
		return why, false
	default: // by the host's switch, before the agent has seen it, or where the agent does not see it
		why = shmring.PauseSwitch
	}
	if !paused && h.State != shmring.StateRecording || paused != (why != 0) || why == p.noted {
		return why, false
	}
	p.noted = why
	return why, true
}

// SetPause adds a reason for pausing (shmring.Pause…), or takes it away. The probe obeys within a tenth of a second.
func (s *Session) SetPause(why uint32, on bool) error { return s.pause.change(s.ring, why, on) }

// PausedBy returns the reasons for pausing that are in force or asked for.
func (s *Session) PausedBy() (why uint32, err error) {
	h, err := s.ring.Status()
	return h.PauseWhy, err
}

// notePause writes to log, recording and status that recording pauses or resumes.
func (s *Session) notePause(h shmring.Status) {
	why, changed := s.pause.changed(h, time.Now())
	if !changed {
		return
	}
	text := "recording resumed"
	if why != 0 {
		reason := pausedWhy(why, s.UID())
		text = "paused: " + reason
		logs.Write(&s.log, logs.Paused, logs.Cause.Of(reason))
	} else {
		logs.Write(&s.log, logs.Resumed)
	}
	if s.in.known {
		s.note(max(s.in.time, s.in.now()), text)
	}
	s.show(h, s.out.st.Stats())
}

// noteClasses shows how many classes the JVM still has to load anew. Meanwhile it may send nothing.
func (s *Session) noteClasses(h shmring.Status) {
	if s.status.ClassesLeft != h.ClassesLeft {
		s.set(func(st *Status) { st.ClassesLeft = h.ClassesLeft })
	}
}

// pausedWhy says why a JVM of the user uid is paused.
func pausedWhy(why uint32, uid int) string {
	switch {
	case why&shmring.PauseSwitch != 0, why == 0:
		return "recording is switched off on this host"
	case why&shmring.PauseOwner != 0:
		return "requested by " + UserName(uid)
	}
	return "requested by an operator"
}
