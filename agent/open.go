package agent

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

// session makes a session of the ring that open opens.
// of counts the sessions of each user.
func (a *Agent) session(open func() (*shmring.Ring, error), of map[int]int) (*session.Session, error) {
	ring, err := open()
	if err != nil {
		return nil, err
	}
	if uid := ring.Owner(); uid > 0 && of[uid] >= maxSessionsEach {
		ring.Close()
		return nil, &session.StoreError{
			Dir: ring.Path(),
			Err: fmt.Errorf("this agent records %d JVMs of uid %d already, the limit of one user", of[uid], uid),
		}
	}
	s, err := a.newSession(ring)
	if err != nil {
		ring.Close()
		return nil, err
	}
	return s, nil
}

func (a *Agent) newSession(ring *shmring.Ring) (*session.Session, error) {
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
	var resource trace.Resource
	host, here := find()
	if here {
		// The header is the word of whoever made the file: nobody makes a ring in the name of another user's JVM.
		if uid, known := ProcessUID(host); known && ring.Owner() > 0 && uid != ring.Owner() {
			return nil, &ForgedError{Path: ring.Path(), Owner: ring.Owner(), PID: host, UID: uid}
		}
		pid, name = host, ProcessName(host)
		if j, err := jvms.Inspect(host); err == nil && j.StartTicks == h.StartTicks {
			resource = j.Resource(jvms.Sources{Rules: a.cfg.Attributes, Pod: a.cfg.Pod})
		}
	} else if w, ok := a.recorded(h.Session, ring.Owner()); ok {
		// What is left in the ring refers to definitions that are stored there alone.
		pid, name, resource = w.PID, w.Name, w.Resource
	}
	fresh, err := ring.Acquire()
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = "jvm"
	}
	id := session.FolderName(name, pid, h.StartTicks)
	who := ringstore.Identity{
		Session: h.Session, Name: name, PID: pid, UID: ring.Owner(), NSPID: h.PID, StartTicks: h.StartTicks,
		VM: h.JVM, Probe: h.Probe, Resource: resource,
	}
	st, dir, err := a.openStore(id, who)
	if err != nil {
		return nil, err
	}
	kept := a.keepRing(ring, h)
	s, err := session.New(a.sessionConfig(), ring, st, dir, h, fresh,
		session.JVM{Identity: who, Here: here, Kept: kept})
	if err != nil {
		_ = st.Close()
		a.leave(dir)
		a.dropRing(kept) // nobody would: it is never tried again
		return nil, err
	}
	return s, nil
}

// sessionConfig says how sessions record.
func (a *Agent) sessionConfig() session.Config {
	c := &a.cfg
	return session.Config{
		MaxTraceSize: c.MaxTraceSize, Deviation: c.Deviation, Compression: c.Compression, SyncInterval: c.SyncInterval,
		Emergency: c.Emergency, Probe: c.Probe, Limits: a.limits.Load, WriteRate: a.rates, Process: a.self, Log: c.Log,
		ProfileEvery: a.profileEvery(), TableEvery: a.tableEvery(),
	}
}

// ForgedError says that a ring names a process of another user than the one who made it.
type ForgedError struct {
	Path     string
	Owner    int // of the file
	PID, UID int // of the process
}

func (e *ForgedError) Error() string {
	return fmt.Sprintf("shared ring %s belongs to uid %d, but names process %d of uid %d", e.Path,
		e.Owner, e.PID, e.UID)
}

// openStore opens the ring folder of one session: a folder of the same session is continued, one of another session is
// not touched.
func (a *Agent) openStore(id string, who ringstore.Identity) (session.Store, string, error) {
	for _, try := range []string{id, id + "-" + shortSession(who.Session)} {
		dir := filepath.Join(a.cfg.Out, try)
		if !a.claim(dir) { // by a session that may not have said yet whose the folder is
			continue
		}
		limit, err := a.disk.Admit(dir)
		if err != nil {
			a.release(dir)
			return nil, "", &session.StoreError{Dir: dir, Err: err}
		}
		st, err := a.store(a.cfg.store(dir, limit), who, a.cfg.Log)
		if err != nil {
			a.leave(dir)
		}
		if errors.Is(err, ringstore.ErrOtherRecording) {
			continue
		}
		if err != nil {
			return nil, "", &session.StoreError{Dir: dir, Err: err}
		}
		return st, dir, nil
	}
	return nil, "", &session.StoreError{Dir: filepath.Join(a.cfg.Out, id), Err: errOtherSession}
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

// leave releases a ring folder: its recording counts as ended.
func (a *Agent) leave(dir string) {
	a.disk.Leave(dir)
	a.release(dir)
}

var errOtherSession = errors.New("the folder holds another recording")

func shortSession(s string) string {
	if len(s) > 8 {
		return s[:8]
	}
	return s
}
