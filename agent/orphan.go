package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

const (
	// orphanTries is how often a restarted agent searches for orphaned rings: the agent before may still be ending.
	orphanTries = 3
	orphanEvery = time.Second
)

// takeOver records the orphaned ring that a JVM has mapped, wherever its file is.
func (a *Agent) takeOver(name string, pid int) {
	a.mu.Lock()
	run := a.run
	a.mu.Unlock()
	if run == nil {
		return
	}
	a.open(run, name, true, func() (*shmring.Ring, error) {
		r, err := shmring.OpenOf(pid, shmring.Options{MaxCapacity: a.cfg.MaxRing, HostPID: pid})
		if errors.Is(err, fs.ErrNotExist) {
			err = shmring.ErrNotReady
		}
		if err != nil {
			return nil, err
		}
		if a.watched(r.Path()) {
			r.Close()
			return nil, shmring.ErrNotReady
		}
		// detached from: the probe keeps it mapped
		if st, err := r.Status(); err != nil || st.State.Ended() && st.Backlog() == 0 {
			r.Close()
			return nil, errors.Join(err, shmring.ErrNotReady)
		}
		return r, nil
	})
}

// watched says that a ring of this name lies in a watched folder: scan is about to open it.
func (a *Agent) watched(path string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, dir := range append(slices.Clone(a.watch), a.cfg.Spool) {
		if dir == "" {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, filepath.Base(path))); err == nil {
			return true
		}
	}
	return false
}

// forget drops an orphaned ring that could not be recorded.
func (a *Agent) forget(name string) {
	a.mu.Lock()
	if e := a.sessions[name]; e != nil && e.s == nil && e.opening.IsZero() {
		delete(a.sessions, name)
	}
	a.mu.Unlock()
}

// whose is the part of recording.json that identifies the JVM.
type whose struct {
	PID        int    `json:"pid"`
	NSPID      uint32 `json:"nspid"`
	StartTicks uint64 `json:"start_ticks"`
	Session    string `json:"session"`
	Name       string `json:"name"`
	UID        int    `json:"uid"`

	Resource trace.Resource `json:"resource"`
}

func whoseRecording(dir string) (w whose, ok bool) {
	b, err := os.ReadFile(filepath.Join(dir, ringstore.RecordingName))
	if err != nil || ringstore.CheckDocument(ringstore.RecordingName, b) != nil {
		return w, false
	}
	ok = json.Unmarshal(b, &w) == nil
	w.Resource = w.Resource.Clean()
	return w, ok && w.PID > 0 && w.StartTicks != 0
}

// takeOverOrphans continues recordings below Out whose JVMs run and whose rings are orphaned: not in a watched folder,
// but memory without a name, or a file that only the JVM sees.
func (a *Agent) takeOverOrphans(ctx context.Context) {
	for range orphanTries {
		select {
		case <-ctx.Done():
			return
		case <-time.After(orphanEvery): // the watched folders first
		}
		for _, w := range a.unfinished() {
			name := "ring of " + strconv.Itoa(w.PID)
			r, err := shmring.OpenOf(w.PID, shmring.Options{MaxCapacity: a.cfg.MaxRing, HostPID: w.PID})
			if err != nil {
				continue
			}
			st, err := r.Status()
			r.Close()
			if err != nil || st.State.Ended() && st.Backlog() == 0 || st.StartTicks != w.StartTicks {
				continue
			}
			a.takeOver(name, w.PID)
			a.forget(name)
		}
	}
}

// unfinished gives the JVMs that were recorded below Out, run, and are not being recorded.
func (a *Agent) unfinished() (out []whose) {
	type jvm struct {
		pid   int
		ticks uint64
	}
	known := map[jvm]bool{}
	for _, s := range a.Status() {
		if s.Unseen {
			continue
		}
		known[jvm{s.PID, s.StartTicks}] = true
	}
	es, err := os.ReadDir(a.cfg.Out)
	if err != nil {
		return nil
	}
	for _, e := range es {
		w, ok := whoseRecording(filepath.Join(a.cfg.Out, e.Name()))
		if !ok {
			continue
		}
		host, ok := findProcess(w.NSPID, w.StartTicks, 0)
		if !ok || host != w.PID || known[jvm{w.PID, w.StartTicks}] {
			continue
		}
		known[jvm{w.PID, w.StartTicks}] = true
		out = append(out, w)
	}
	return out
}
