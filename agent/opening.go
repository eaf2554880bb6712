package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/shmring"
)

const (
	// openWithin is how long the agent waits for a ring and its recording to open. On a disk that hangs, opening
	// continues in the background.
	openWithin = 250 * time.Millisecond
)

var errDiskHangs = errors.New("the disk does not answer: cannot open the recording")

// open begins a session of the ring that ring opens, known by path.
func (a *Agent) open(ctx context.Context, path string, orphan bool, ring func() (*shmring.Ring, error)) (again bool) {
	a.mu.Lock()
	e := a.sessions[path]
	if e == nil {
		e = &entry{since: time.Now(), orphan: orphan}
		a.sessions[path] = e
	}
	opening := e.opening
	busy := e.s != nil || e.bad != nil || a.closed || time.Now().Before(e.again)
	if busy && opening.IsZero() { // as nearly all at most looks
		a.mu.Unlock()
		return false
	}
	n, of := 0, map[int]int{}
	for _, o := range a.sessions {
		if o.s != nil {
			n++
			of[o.s.UID()]++
		} else if !o.opening.IsZero() {
			n++
		}
	}
	a.mu.Unlock()
	if !opening.IsZero() {
		if time.Since(opening) > session.StuckAfter {
			e.warn(a, path, errDiskHangs)
		}
		return false
	}
	if a.cfg.Accept != nil && !a.cfg.Accept(path) {
		return false
	}
	if err := a.Room(); err != nil {
		a.mu.Lock()
		e.last = err
		a.mu.Unlock()
		e.warn(a, path, err)
		return false
	}
	if n >= maxSessions {
		e.warn(a, path, fmt.Errorf("this agent records %d JVMs already, and that is its limit", n))
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

// opened notes the result of opening a ring.
func (a *Agent) opened(ctx context.Context, path string, e *entry, s *session.Session, err error) (again bool) {
	var store *session.StoreError
	a.mu.Lock()
	slow := time.Since(e.opening) > session.StuckAfter
	e.opening, e.last = time.Time{}, err
	switch {
	// the disk may come back
	case err == nil, errors.Is(err, shmring.ErrNotReady), errors.Is(err, shmring.ErrBusy),
		errors.Is(err, os.ErrNotExist), errors.As(err, &store):
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
		logs.Write(s.Log(), logs.DiskAnswers)
	}
	sctx, cancel := context.WithCancel(ctx)
	if err := s.SetPause(shmring.PauseSwitch, a.off.Load()); err != nil {
		logs.Write(&a.cfg.Log, logs.SwitchNotPassed, logs.Err.Of(err), logs.Path.Of(path))
	}
	a.mu.Lock()
	a.sessions[path] = e
	e.s, e.cancel, e.began = s, cancel, time.Now()
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

// Others returns the JVMs that are not recorded: those of Config.Others, and those whose ring cannot be opened, or not
// now.
func (a *Agent) Others() (out []api.Other) {
	type waiting struct {
		e    *entry
		path string
		err  error
	}
	var ws []waiting
	a.mu.Lock()
	for p, e := range a.sessions {
		err := e.last
		if !e.opening.IsZero() && time.Since(e.opening) > session.StuckAfter {
			err = errDiskHangs
		}
		if e.s == nil && !e.listed && waits(err) {
			ws = append(ws, waiting{e, p, err})
		}
	}
	a.mu.Unlock()
	seen := map[int]bool{}
	for _, w := range ws {
		a.mu.Lock()
		who := w.e.who
		a.mu.Unlock()
		if who == nil { // looking for a process takes a while
			o := whoseRing(w.path)
			who = &o
			a.mu.Lock()
			w.e.who = who
			a.mu.Unlock()
		}
		o := *who
		o.Reason = w.err.Error()
		var store *session.StoreError
		switch {
		case errors.Is(w.err, quota.ErrNoMemory), errors.Is(w.err, quota.ErrEvicted):
			o.Why, o.Remedy = "agent memory", "raise agent_max_memory, or exclude some JVMs by a rule"
		case errors.Is(w.err, errDiskHangs), errors.As(w.err, &store):
			o.Why, o.Remedy = "disk", "check the disk (dmesg, df); the agent tries again by itself"
		default:
			o.Why = "ring"
		}
		if o.PID != 0 {
			seen[o.PID] = true
		}
		out = append(out, o)
	}
	slices.SortFunc(out, func(x, y api.Other) int { return cmp.Compare(x.PID, y.PID) })
	if a.cfg.Others != nil {
		for _, o := range a.cfg.Others() {
			if !seen[o.PID] {
				out = append(out, o)
			}
		}
	}
	return out
}

// waits says that an error keeps a JVM from being recorded. It is false for a ring that is being made, is gone, or
// belongs to another recorder.
func waits(err error) bool {
	return err != nil && !errors.Is(err, shmring.ErrNotReady) && !errors.Is(err, shmring.ErrBusy) &&
		!errors.Is(err, os.ErrNotExist)
}

// whoseRing returns what the name of a ring says of its JVM. More is not known without opening the ring.
func whoseRing(path string) api.Other {
	o := api.Other{ID: filepath.Base(path), UID: -1}
	ns, ticks, ok := shmring.ParseName(path)
	if !ok {
		return o
	}
	o.PID = int(ns)
	host, found := findProcess(ns, ticks, 0)
	// a name is no proof: the file is not that process's
	if uid, known := ProcessUID(host); found && known && !madeBy(path, uid) {
		o.PID = 0
		return o
	}
	if found {
		o.PID, o.ID, o.Name = host, jvms.ID(host, ticks), ProcessName(host)
		if uid, known := ProcessUID(host); known {
			o.UID = uid
		}
	}
	return o
}

func (e *entry) warn(a *Agent, path string, err error) {
	if e.orphan && errors.Is(err, shmring.ErrBusy) {
		return // another agent with the same folder for recordings records it
	}
	a.mu.Lock()
	logged := e.warned
	e.warned = true
	a.mu.Unlock()
	if !logged {
		logs.Write(a.ringLog(path), logs.RingNotRecorded, logs.Err.Of(err), logs.Path.Of(path))
	}
}

// countStuck counts the sessions, open or being opened, that have waited for the disk longer than session.StuckAfter.
func (a *Agent) countStuck() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.sessions {
		if e.s != nil && e.s.Stuck() > 0 || !e.opening.IsZero() && time.Since(e.opening) > session.StuckAfter {
			n++
		}
	}
	return n
}

// logStuck logs sessions that wait for the disk, and those that continue.
func (a *Agent) logStuck() {
	a.mu.Lock()
	var all []*entry
	for _, e := range a.sessions {
		if e.s != nil {
			all = append(all, e)
		}
	}
	a.mu.Unlock()
	for _, e := range all {
		a.mu.Lock()
		s := e.s
		a.mu.Unlock()
		if s == nil { // ended meanwhile
			continue
		}
		switch d := s.Stuck(); {
		case d > 0 && !e.stuck:
			logs.Write(s.Log(), logs.DiskHangs, logs.Waited.Of(d), logs.Path.Of(s.Dir()))
			e.stuck = true
		case d == 0 && e.stuck:
			logs.Write(s.Log(), logs.DiskAnswers)
			e.stuck = false
		}
	}
}
