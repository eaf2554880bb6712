package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/heapcam/heapcam/shmring"
)

const (
	// openWithin is how long opening a ring and its recording is waited for: on a disk that hangs it goes on beside everything else.
	openWithin = 250 * time.Millisecond
	// stuckAfter is how long the disk may take to answer before that is told.
	stuckAfter = 5 * time.Second
)

var errStuck = errors.New("the disk does not answer: its recording can not be opened")

// open begins a session of the ring that ring opens, known by path.
func (a *Agent) open(ctx context.Context, path string, stray bool, ring func() (*shmring.Ring, error)) (again bool) {
	a.mu.Lock()
	e := a.sessions[path]
	if e == nil {
		e = &entry{since: time.Now(), stray: stray}
		a.sessions[path] = e
	}
	busy := e.s != nil || e.bad != nil || a.closed || time.Now().Before(e.again)
	n, of := 0, map[int]int{}
	for _, o := range a.sessions {
		if o.s != nil {
			n++
			of[o.s.status.UID]++
		} else if !o.opening.IsZero() {
			n++
		}
	}
	opening := e.opening
	a.mu.Unlock()
	if !opening.IsZero() {
		if time.Since(opening) > stuckAfter {
			e.warn(a, path, errStuck)
		}
		return false
	}
	if busy {
		return false
	}
	if a.cfg.Accept != nil && !a.cfg.Accept(path) {
		return false
	}
	if n >= maxSessions {
		e.warn(a, path, fmt.Errorf("%d JVMs are being recorded already: not recording more", n))
		return true
	}
	a.mu.Lock()
	e.opening = time.Now()
	a.mu.Unlock()
	done := make(chan bool, 1)
	a.wg.Go(func() {
		s, err := a.session(ring, of)
		done <- a.opened(ctx, path, e, s, err)
	})
	late := time.NewTimer(openWithin)
	defer late.Stop()
	select {
	case again = <-done:
		return again
	case <-late.C:
		return true
	}
}

// opened takes note of what came of opening a ring.
func (a *Agent) opened(ctx context.Context, path string, e *entry, s *session, err error) (again bool) {
	var store *StoreError
	a.mu.Lock()
	slow := time.Since(e.opening) > stuckAfter
	e.opening, e.last = time.Time{}, err
	switch {
	case err == nil, errors.Is(err, shmring.ErrNotReady), errors.Is(err, shmring.ErrBusy), errors.Is(err, os.ErrNotExist), errors.As(err, &store): // the disk may come back
	default:
		e.bad = err
	}
	a.mu.Unlock()
	switch {
	case errors.Is(err, shmring.ErrNotReady):
		if time.Since(e.since) > notReadyFor {
			e.warn(a, path, err)
		}
		return time.Since(e.since) < notReadyFor
	case errors.Is(err, os.ErrNotExist) && store == nil:
		return false
	case err != nil:
		e.warn(a, path, err)
		return false
	}
	if slow {
		s.log.Info().Msg("the disk answers again: the recording is open")
	}
	sctx, cancel := context.WithCancel(ctx)
	if err := s.setPause(shmring.PauseSwitch, a.off.Load()); err != nil {
		a.cfg.Log.Warn().Err(err).Str("ring", path).Msg("the host's switch could not be told")
	}
	a.mu.Lock()
	a.sessions[path] = e
	e.s, e.cancel = s, cancel
	a.wg.Add(1)
	a.signal()
	a.mu.Unlock()
	go func() {
		defer a.wg.Done()
		defer cancel()
		a.runSession(sctx, path, s)
	}()
	return false
}

func (e *entry) warn(a *Agent, path string, err error) {
	a.mu.Lock()
	told := e.warned
	e.warned = true
	a.mu.Unlock()
	if !told {
		a.cfg.Log.Warn().Err(err).Str("ring", path).Msg("not recording")
	}
}

// doing notes that the session does something that may have to wait for the disk, until what it gives is called.
func (s *session) doing() func() {
	s.busy.Store(time.Now().UnixNano())
	return func() { s.busy.Store(0) }
}

// stuck is how long the disk has kept the session waiting, 0 as long as that is nothing to tell of.
func (s *session) stuck() time.Duration {
	if since := s.busy.Load(); since != 0 {
		if d := time.Since(time.Unix(0, since)); d > stuckAfter {
			return d.Round(time.Second)
		}
	}
	return 0
}

// lookStuck tells the log of sessions that the disk keeps waiting, and of those that go on.
func (a *Agent) lookStuck() {
	a.mu.Lock()
	var all []*session
	for _, e := range a.sessions {
		if e.s != nil {
			all = append(all, e.s)
		}
	}
	a.mu.Unlock()
	for _, s := range all {
		switch d := s.stuck(); {
		case d > 0 && !s.stuckTold:
			s.log.Error().Dur("waited", d).Str("dir", s.status.Dir).Msg("the disk does not answer: this JVM's recording stands still, what its shared ring does not hold is lost")
			s.stuckTold = true
		case d == 0 && s.stuckTold:
			s.log.Warn().Msg("the disk answers again")
			s.stuckTold = false
		}
	}
}
