package agent

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/spool"
	"github.com/heapcam/heapcam/shmring"
)

// Spool returns the state of the spool folder, nil without one.
func (a *Agent) Spool() *spool.Status {
	if a.spool == nil {
		return nil
	}
	return a.spool.Status()
}

func (a *Agent) spoolConfig() spool.Config {
	c := &a.cfg
	return spool.Config{
		Dir: c.Spool, Out: c.Out, KeepFree: c.KeepFree, MaxRing: c.MaxRing, Disk: a.disk,
		Log:    session.BoundLog(c.Log), // others put as many files there as they like
		Record: a.recordSpooled, Forget: a.forgetSpooled,
	}
}

// recordSpooled records a ring of the spool folder, or returns why it does not.
func (a *Agent) recordSpooled(ctx context.Context, path string, open func() (*shmring.Ring, error)) error {
	a.open(ctx, path, true, open)
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.sessions[path]
	if e == nil || e.s != nil || errors.Is(e.last, shmring.ErrNotReady) && time.Since(e.since) < notReadyFor {
		return nil
	}
	return e.last
}

// forgetSpooled drops what is known of rings that have left the spool folder.
func (a *Agent) forgetSpooled(seen func(name string) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for path, e := range a.sessions {
		if filepath.Dir(path) == a.cfg.Spool && !seen(filepath.Base(path)) && e.s == nil && e.opening.IsZero() {
			delete(a.sessions, path)
		}
	}
}

// Records says whether a JVM of the user uid is being recorded.
func (a *Agent) Records(uid int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.sessions {
		if e.s != nil && e.s.UID() == uid {
			return true
		}
	}
	return false
}
