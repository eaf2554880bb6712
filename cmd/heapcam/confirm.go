package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/ui"
)

const (
	stillLoaded = "the JVM did not confirm that the probe has stopped: see its stderr"

	// detachTime is how long a verb waits for a JVM to confirm that it has detached, if it shows no progress. One that
	// gives classes back shows some between its stops.
	detachTime = 5 * time.Second
	// classesTime is how long one such stop may take.
	classesTime = 30 * time.Second
	// confirmEvery is how often a verb looks whether JVMs have detached.
	confirmEvery = 200 * time.Millisecond
	// pausedTime is how long pause waits until the agent has seen that the probe obeyed: it looks once a second.
	pausedTime = 2 * time.Second
	// tellEvery is how often it says how many classes are left.
	tellEvery = 5 * time.Second
)

// confirmed waits until JVMs have confirmed that their probes stopped. Those that changed classes give them back first,
// which takes as long as it takes. left gives how many classes that is, and whether there are JVMs that have not
// confirmed. false: nothing goes on any more. Errors: those of left.
func confirmed(left func() (classes uint64, any bool, err error)) (bool, error) {
	var was uint64
	moved, told := time.Now(), time.Time{}
	for {
		n, any, err := left()
		if err != nil || !any {
			return err == nil, err
		}
		now := time.Now()
		if n != was {
			was, moved = n, now
		}
		if n > 0 && now.Sub(told) > tellEvery {
			told = now
			ui.Fprintf(ui.Stderr, "heapcam: the JVM is given back the classes that were changed: %s left\n",
				ui.Count(n))
		}
		if now.Sub(moved) > detachTime && (n == 0 || now.Sub(moved) > classesTime) {
			return false, nil
		}
		time.Sleep(confirmEvery)
	}
}

// agentConfirms is confirmed for all sessions of a.
func agentConfirms(a *agent.Agent) bool {
	ok, _ := confirmed(func() (n uint64, any bool, err error) {
		ctx, stop := context.WithTimeout(context.Background(), confirmEvery)
		defer stop()
		any = errors.Is(a.Idle(ctx), context.DeadlineExceeded)
		return classesLeft(a.Status(), func(session.Status) bool { return true }), any, nil
	})
	return ok
}

// clientConfirms is confirmed for the session with that ID, or for all that were asked to detach if it is "".
func clientConfirms(ctx context.Context, c *api.Client, id string) (bool, error) {
	return confirmed(func() (n uint64, any bool, err error) {
		st, err := c.Status(ctx)
		if err != nil {
			return 0, false, err
		}
		asked := func(s session.Status) bool {
			return !s.Phase.Over() && (s.ID == id || id == "" && s.DetachedBy != "")
		}
		for _, s := range st.JVMs {
			any = any || asked(s)
		}
		return classesLeft(st.JVMs, asked), any, nil
	})
}

func classesLeft(all []session.Status, of func(session.Status) bool) (n uint64) {
	for _, s := range all {
		if of(s) && !s.Phase.Over() {
			n += s.ClassesLeft
		}
	}
	return n
}

// paused waits a while until the session with that ID, or all for "", record no more. So `heapcam status` right behind
// pause shows the pause.
func paused(status func() (api.StatusReply, error), id string) {
	for end := time.Now().Add(pausedTime); time.Now().Before(end); time.Sleep(confirmEvery / 2) {
		st, err := status()
		if err != nil || !slices.ContainsFunc(st.JVMs, func(s session.Status) bool {
			return (id == "" || s.ID == id) && s.Phase == session.Recording
		}) {
			return
		}
	}
}
