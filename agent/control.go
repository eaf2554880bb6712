package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/shmring"
)

// detachWithin is how long Detach waits for recordings to end: the probe polls its ring twenty times a second.
const detachWithin = 3 * time.Second

// Detach asks the probe of the session whose ID is id, or all for "", to stop, and waits a while for the recordings to
// end. It returns how many were asked.
func (a *Agent) Detach(id string) (int, error) { return a.DetachFor(operator, id) }

// DetachFor is Detach, of those sessions that c may detach from.
func (a *Agent) DetachFor(c api.Caller, id string) (int, error) {
	var asked []*session.Session
	n, err := a.eachOf(c, id, func(s *session.Session) error {
		asked = append(asked, s)
		return s.Detach(c.Who())
	})
	a.awaitEnd(asked)
	return n, err
}

// awaitEnd waits a while for recordings to end that were asked to: then their JVMs can be attached to again.
func (a *Agent) awaitEnd(asked []*session.Session) {
	for end := time.Now().Add(detachWithin); time.Now().Before(end); time.Sleep(pollFast) {
		a.mu.Lock()
		left := slices.ContainsFunc(asked, func(s *session.Session) bool {
			for _, e := range a.sessions {
				if e.s == s {
					return true
				}
			}
			return false
		})
		a.mu.Unlock()
		if !left {
			return
		}
	}
}

// Pause stops recording of the session whose ID is id, or of all for "", until Resume. It returns how many were asked;
// their probes obey within 100 ms. The ring keeps the pause over a restart of the agent.
func (a *Agent) Pause(id string) (int, error) { return a.PauseFor(operator, id) }

// Resume resumes a session, or all for "". A pause by the host's switch stays.
func (a *Agent) Resume(id string) (int, error) { return a.ResumeFor(operator, id) }

// operator is this program itself.
var operator = api.Caller{Name: "agent", UID: -1, Role: api.Operator}

// PauseFor is Pause, of those sessions that c may pause.
func (a *Agent) PauseFor(c api.Caller, id string) (int, error) {
	why := uint32(shmring.PauseAsked)
	if c.Role != api.Operator {
		why = shmring.PauseOwner
	}
	return a.eachOf(c, id, func(s *session.Session) error { return s.SetPause(why, true) })
}

// ResumeFor is Resume, of those sessions that c may resume. A pause by a JVM's user ends when that user resumes it, or
// an operator who names the JVM. What an operator has paused its user cannot resume.
func (a *Agent) ResumeFor(c api.Caller, id string) (int, error) {
	why := uint32(shmring.PauseAsked)
	switch {
	case c.Role != api.Operator:
		why = shmring.PauseOwner
	case id != "":
		why |= shmring.PauseOwner
	}
	return a.eachOf(c, id, func(s *session.Session) error {
		err := s.SetPause(why, false)
		if err != nil || c.Role == api.Operator || id == "" {
			return err
		}
		if why, err := s.PausedBy(); err == nil && why&shmring.PauseAsked != 0 {
			return fmt.Errorf("%s was paused by root or a member of the group %s; only they can resume it: %w",
				id, api.Group, os.ErrPermission)
		}
		return nil
	})
}

// ReferencesFor takes a reference listing of the session whose ID is id, if c controls it.
func (a *Agent) ReferencesFor(ctx context.Context, c api.Caller, id string, most time.Duration,
) (out session.References, err error) {
	if id == "" {
		return out, fmt.Errorf("no recording is named (%w)", os.ErrNotExist)
	}
	var of *session.Session
	if _, err := a.eachOf(c, id, func(s *session.Session) error { of = s; return nil }); err != nil {
		return out, err
	}
	return of.AskReferences(ctx, most)
}

// eachOf calls f for the session whose ID is id, or all for "", as far as c controls them. A session that c does not
// control is reported as not found.
func (a *Agent) eachOf(c api.Caller, id string, f func(*session.Session) error) (n int, err error) {
	a.mu.Lock()
	var all []*session.Session
	for _, e := range a.sessions {
		if e.s != nil && (id == "" || e.s.ID() == id) {
			all = append(all, e.s)
		}
	}
	a.mu.Unlock()
	all = slices.DeleteFunc(all, func(s *session.Session) bool { return !controls(c, s) })
	if id != "" && len(all) == 0 {
		return 0, api.NotThere(id)
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

// controls says whether c may pause s and detach from it. For recordings the owner of the ring decides. Here the
// process itself must be wholly the caller's now. A process that has taken another user's rights is that user's, too,
// and one that this agent cannot see may be anybody's.
//
// All users are as the agent's user namespace counts them: the kernel translates those of SO_PEERCRED and of /proc
// alike, and who has no number there is the overflow user, which is nobody. So root of a container with a user
// namespace of its own is an ordinary user here.
func controls(c api.Caller, s *session.Session) bool {
	if c.Role == api.Operator {
		return true
	}
	st := s.Status()
	return c.Sees(st.UID) && !st.Spool && ownedBy(st.PID, st.StartTicks, c.UID)
}
