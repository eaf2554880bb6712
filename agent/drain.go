package agent

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/shmring"
)

// Drain waits until no session runs whose JVM or probe has ended, and every ring in the watched folders has been opened
// or refused. Then everything that was committed before the call is stored. Drain does not wait for sessions of living
// JVMs. Run must be running.
func (a *Agent) Drain(ctx context.Context) error {
	for {
		a.Rescan()
		a.mu.Lock()
		dirs, changed := slices.Clone(a.watch), a.changed
		var running []*session.Session
		known := map[string]bool{}
		for p, e := range a.sessions {
			known[p] = e.s != nil || e.bad != nil || e.warned
			if e.s != nil {
				running = append(running, e.s)
				e.s.Hurry()
			}
		}
		a.mu.Unlock()
		busy := false
		for _, d := range dirs {
			paths, _ := shmring.Scan(d)
			for _, p := range paths {
				if !known[p] && (a.cfg.Accept == nil || a.cfg.Accept(p)) && !abandoned(p) {
					busy = true
				}
			}
		}
		busy = busy || slices.ContainsFunc(running, (*session.Session).Ended)
		if !busy {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-time.After(pollFast):
		}
	}
}

// abandoned says that a ring was never finished and its maker is gone: a JVM killed while it started.
func abandoned(path string) bool {
	r, err := shmring.Open(path, shmring.Options{})
	if err == nil {
		r.Close()
		return false
	}
	if !errors.Is(err, shmring.ErrNotReady) {
		return errors.Is(err, os.ErrNotExist)
	}
	pid, ticks, ok := shmring.ParseName(path)
	if ok {
		_, ok = findProcess(pid, ticks, 0)
	}
	return !ok
}

// Idle waits until no session runs.
func (a *Agent) Idle(ctx context.Context) error {
	for {
		a.mu.Lock()
		n, changed := 0, a.changed
		for _, e := range a.sessions {
			if e.s != nil {
				n++
			}
		}
		a.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// Changed gives a channel that is closed when a session begins or ends.
func (a *Agent) Changed() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}
