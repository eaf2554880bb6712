package svc

import (
	"context"
	"time"
)

// Alive says whether the agent works, and gives a few words about its state. If it blocks, the watchdog is not fed.
type Alive func() (text string, err error)

const (
	// idle is how often the text is reported if no watchdog requires more.
	idle = 10 * time.Second
	// starting is how often Notify asks an agent that is not ready yet.
	starting = 50 * time.Millisecond
)

// notifier is the service manager as Notify needs it. send reports a state in the form of sd_notify(3). watchdog is how
// long the manager waits for a report; 0 is forever.
type notifier struct {
	send     func(state string)
	watchdog time.Duration
}

// Notify reports to the service manager that the agent is ready, as soon as alive gives no error. Then it feeds the
// watchdog three times in its interval, as long as alive gives no error. When ctx is done it reports that the agent
// stops. Without a manager that listens it returns at once. It never fails.
func Notify(ctx context.Context, alive Alive) {
	if n, ok := systemd(); ok {
		n.run(ctx, alive)
	}
}

func (n *notifier) run(ctx context.Context, alive Alive) {
	every := idle
	if n.watchdog > 0 {
		every = n.watchdog / 3
	}
	ready, reported := false, ""
	for {
		state, wait := "", every
		text, err := alive()
		switch {
		case err != nil && !ready:
			text, wait = "starting", min(starting, every)
		case err != nil:
			text = "hangs: " + err.Error()
		default:
			if !ready {
				state, ready = "READY=1\n", true
			}
			if n.watchdog > 0 {
				state += "WATCHDOG=1\n"
			}
		}
		if text = oneLine(text); text != reported {
			state += "STATUS=" + text + "\n"
			reported = text
		}
		if state != "" {
			n.send(state)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			n.send("STOPPING=1\nSTATUS=stopping\n")
			return
		case <-timer.C:
		}
	}
}

// Reloading reports to the manager that the agent reads its configuration. done reports the end of that.
func Reloading() (done func()) {
	n, ok := systemd()
	if !ok {
		return func() {}
	}
	n.send("RELOADING=1\n" + monotonic())
	return func() { n.send("READY=1\n") }
}

func oneLine(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c < ' ' {
			b[i] = ' '
		}
	}
	return string(b)
}
