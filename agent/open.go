package agent

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/emergency"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/syncpoint"
)

// StoreError says that the recording's folder can not be used now.
type StoreError struct {
	Dir string
	Err error
}

func (e *StoreError) Error() string { return fmt.Sprintf("recording %s: %v", e.Dir, e.Err) }
func (e *StoreError) Unwrap() error { return e.Err }

// session makes a session of the ring that open opens.
// of counts the sessions of each user.
func (a *Agent) session(open func() (*shmring.Ring, error), of map[int]int) (*session, error) {
	ring, err := open()
	if err != nil {
		return nil, err
	}
	if uid := ring.Owner(); uid > 0 && of[uid] >= maxSessionsEach {
		ring.Close()
		return nil, &StoreError{ring.Path(), fmt.Errorf("%d JVMs of uid %d are being recorded already", of[uid], uid)}
	}
	s, err := a.newSession(ring)
	if err != nil {
		ring.Close()
		return nil, err
	}
	return s, nil
}

func (a *Agent) newSession(ring *shmring.Ring) (*session, error) {
	h, err := ring.Status()
	if err != nil {
		return nil, err
	}
	pid, name := int(h.PID), ""
	find := func() (int, bool) { return findProcess(h.PID, h.StartTicks, h.PIDNS) }
	if ring.Away() { // a number of another container or host may be anybody's here
		find = func() (int, bool) { return producer(ring, h) }
		name = h.Name
	}
	host, here := find()
	if here {
		// The header is the word of whoever made the file: nobody makes a ring in the name of another user's JVM.
		if uid, known := ProcessUID(host); known && ring.Owner() > 0 && uid != ring.Owner() {
			return nil, &ForgedError{Path: ring.Path(), Owner: ring.Owner(), PID: host, UID: uid}
		}
		pid, name = host, ProcessName(host)
	} else if w, ok := a.recorded(h.Session, ring.Owner()); ok {
		// What is left in the ring refers to definitions that are stored there alone.
		pid, name = w.PID, w.Name
	}
	fresh, err := ring.Acquire()
	if err != nil {
		return nil, err
	}
	if a.limits.Load().BudgetCPU == 0 && h.EpochMax|h.CostMax != 0 { // an agent before had a budget
		if err := errors.Join(ring.SetEpochMax(0), ring.SetCostMax(0)); err != nil {
			return nil, err
		}
	}
	if name == "" {
		name = "jvm"
	}
	id := FolderName(name, pid, h.StartTicks)
	last, err := emergency.New(a.cfg.Emergency, ring.RequestEmergency)
	if err != nil {
		return nil, err
	}
	st, dir, err := a.openStore(id, identity{
		Session: h.Session, Name: name, PID: pid, UID: ring.Owner(), NSPID: h.PID, StartTicks: h.StartTicks, VM: h.JVM, Probe: h.Probe,
	})
	if err != nil {
		return nil, err
	}
	s := &session{
		cfg: &a.cfg, ring: ring, st: st, plan: syncpoint.New(), last: last, live: newLive(), defs: newDefs(),
		skipTo: st.LastSource(), ringLoss: h, listRatio: 1, rate: rate{key: "max_write_rate"}, rates: a.rates, limits: &a.limits, self: a.self,
		storms: syncpoint.Budget{Bytes: int64(stormBudget * float64(a.cfg.MaxTraceSize)), Span: uint64(stormTime)},
	}
	s.oom.seen, s.asked = h.Exhausted, !fresh
	if fresh {
		s.oom.seen = 0
		s.ringLoss.EpochsDropped, s.ringLoss.SamplesDropped = 0, 0
	}
	s.status = Status{
		ID: filepath.Base(dir), Name: name, PID: pid, UID: ring.Owner(), StartTicks: h.StartTicks, Session: h.Session, VM: h.JVM, Probe: h.Probe, Renew: a.cfg.Probe != "" && h.Probe != a.cfg.Probe,
		Spool: ring.Away() && !here, Unseen: !ring.Away() && !here && ring.Owner() >= 0, RingOnDisk: h.Flags&shmring.FlagDisk != 0,
		Phase: Recording, Dir: dir, Since: time.Now(), RingBytes: h.Capacity, GuaranteeMet: true,
	}
	s.heldAs = a.keepRing(ring, h)
	s.status.RingMemfd, s.status.RingKept = h.Flags&shmring.FlagMemfd != 0, s.heldAs != ""
	s.log = quieted(a.cfg.Log.With().Str("jvm", s.status.ID).Logger())
	if err := s.heed(); err != nil {
		return nil, err
	}
	s.recall()
	if s.skipTo > 0 {
		s.resume()
	}
	return s, nil
}

// ForgedError says that a ring names a process of another user than the one who made it.
type ForgedError struct {
	Path     string
	Owner    int // of the file
	PID, UID int // of the process
}

func (e *ForgedError) Error() string {
	return fmt.Sprintf("%s: made by uid %d, but names process %d of uid %d: not recorded", e.Path, e.Owner, e.PID, e.UID)
}

// openStore opens the ring folder of one session: that of the same session goes on, that of another one is left alone.
func (a *Agent) openStore(id string, who identity) (store, string, error) {
	for _, try := range []string{id, id + "-" + shortSession(who.Session)} {
		dir := filepath.Join(a.cfg.Out, try)
		if !a.claim(dir) { // by a session that may not have said yet whose the folder is
			continue
		}
		limit, err := a.total.admit(dir)
		if err != nil {
			a.release(dir)
			return nil, "", &StoreError{dir, err}
		}
		cfg := a.cfg
		cfg.MaxTraceSize = cfg.sizeFor(limit)
		st, err := a.store(&cfg, dir, who)
		if err != nil {
			a.total.leave(dir)
			a.release(dir)
		}
		if errors.Is(err, errOtherSession) {
			continue
		}
		if err != nil {
			return nil, "", &StoreError{dir, err}
		}
		return st, dir, nil
	}
	return nil, "", &StoreError{filepath.Join(a.cfg.Out, id), errOtherSession}
}

// claim says whether dir is free for a session of this agent, and keeps it for that one until release.
func (a *Agent) claim(dir string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	free := !a.claimed[dir]
	a.claimed[dir] = true
	return free
}

func (a *Agent) release(dir string) {
	a.mu.Lock()
	delete(a.claimed, dir)
	a.mu.Unlock()
}

var errOtherSession = errors.New("the folder holds another recording")

func shortSession(s string) string {
	if len(s) > 8 {
		return s[:8]
	}
	return s
}

// FolderName gives the name of a recording: the program's name and the JVM's id (see jvms.ID: pid and start).
func FolderName(name string, pid int, ticks uint64) string {
	return cleanName(name) + "-" + jvms.ID(pid, ticks)
}

// maxName bounds the name within a folder's name.
const maxName = 48

// cleanName keeps what is safe in a file name on every platform.
func cleanName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.', r == '$':
			return r
		}
		return '_'
	}, s)
	s = strings.TrimLeft(s, ".")
	if len(s) > maxName {
		s = s[len(s)-maxName:]
	}
	if s == "" {
		return "jvm"
	}
	return s
}
