package svc

import (
	"context"
	"time"
)

// Alive says whether the agent works, and describes its state in a few words. It may block: then the watchdog is
// not fed.
type Alive func() (text string, err error)

const (
	// idle is how often the text is sent where no watchdog needs it more often.
	idle = 10 * time.Second
	// starting is how often an agent that is not ready yet is asked.
	starting = 50 * time.Millisecond
)

// notifier is the service manager as Notify needs it: send sends it a state in the form of sd_notify(3), and watchdog
// gives how long it waits for a sign of life, 0: for ever.
type notifier struct {
	send     func(state string)
	watchdog time.Duration
}

// Notify notifies the service manager that the agent is ready, as soon as alive gives no error; then it feeds its
// watchdog three times in its interval as long as alive gives none, until ctx is done, and then sends that it stops.
// Without a manager that listens it returns at once; it never fails.
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
	ready, said := false, ""
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
		if text = oneLine(text); text != said {
			state += "STATUS=" + text + "\n"
			said = text
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

// Reloading notifies the manager that the configuration is being read; the function that it gives, that this is over.
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
