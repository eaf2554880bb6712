package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/shmring"
)

// Rings that are memory without a name are lost when JVM and agent have both ended, unless the service manager keeps a
// descriptor (Config.KeepFD).

// keptPrefix begins the names of descriptors that are ours.
const keptPrefix = "heapcam-"

var errNothingLeft = errors.New("all of it is stored")

// keptName is the name by which the manager keeps a ring. The session, which nobody else can guess, keeps a JVM whose
// header lies about its pid from removing the ring of another.
func keptName(h shmring.Status) string {
	return fmt.Sprintf("%s%d-%d-%s", keptPrefix, h.PID, h.StartTicks, h.Session)
}

// keepRing has the manager keep a ring that is memory without a name, and gives the name by which it does; "": it does
// not.
func (a *Agent) keepRing(ring *shmring.Ring, h shmring.Status) string {
	if a.cfg.KeepFD == nil || h.Flags&shmring.FlagMemfd == 0 || !ring.Unnamed() {
		return ""
	}
	name := keptName(h)
	a.mu.Lock()
	has := a.held[name]
	a.mu.Unlock()
	if has {
		return name
	}
	f, err := ring.Reopen()
	if err == nil {
		err = a.cfg.KeepFD(name, f)
		f.Close()
	}
	if err != nil {
		logs.Write(&a.cfg.Log, logs.RingNotKept, logs.Err.Of(err), logs.Path.Of(ring.Path()))
		return ""
	}
	a.mu.Lock()
	a.held[name] = true
	a.mu.Unlock()
	return name
}

// dropRing has the manager drop what it keeps by that name.
func (a *Agent) dropRing(name string) {
	if name == "" {
		return
	}
	a.mu.Lock()
	delete(a.held, name)
	a.mu.Unlock()
	if a.cfg.DropFD != nil {
		a.cfg.DropFD(name)
	}
}

// openKept opens the ring of a descriptor that the service manager kept.
func (a *Agent) openKept(f *os.File) (*shmring.Ring, error) {
	name := f.Name()
	if !strings.HasPrefix(name, keptPrefix) {
		return nil, &shmring.NotRingError{Path: name, Why: "its name is not one that heapcam gives"}
	}
	r, err := shmring.OpenFile(f, shmring.Options{MaxCapacity: a.cfg.MaxRing})
	if err != nil {
		return nil, err
	}
	h, err := r.Status()
	switch {
	case err != nil:
	case h.Flags&shmring.FlagMemfd == 0 || name != keptName(h):
		err = &shmring.NotRingError{Path: name, Why: "it is not the ring that its name says"}
	case h.State.Ended() && h.Backlog() == 0: // the agent before ended between storing and dropping it
		err = errNothingLeft
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// takeOverKept records the rings whose descriptors the manager has kept, and has it drop each when it is stored, or can
// not be read.
func (a *Agent) takeOverKept(ctx context.Context) {
	files := slices.Clone(a.cfg.Kept)
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	for {
		files = slices.DeleteFunc(files, func(f *os.File) bool {
			done := ctx.Err() == nil && a.tryKept(ctx, f)
			if done {
				f.Close()
			}
			return done
		})
		if len(files) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(orphanEvery):
		}
	}
}

// tryKept begins a session of a kept ring unless one runs, and says whether nothing remains to be done with it.
func (a *Agent) tryKept(ctx context.Context, f *os.File) (done bool) {
	name := f.Name()
	a.mu.Lock()
	held, e := a.held[name], a.sessions[name]
	runs := e != nil && !e.opening.IsZero()
	for _, o := range a.sessions { // one that was opened through /proc is known by another name
		runs = runs || o.s != nil && o.s.Kept() == name
	}
	var bad error
	if e != nil {
		bad = e.bad
	}
	a.mu.Unlock()
	switch {
	case !held: // its session has ended
		return true
	case runs:
		return false
	case bad != nil: // the log has it
		if !scarce(bad) { // otherwise the next agent may have more luck
			a.dropRing(name)
		}
		return true
	}
	var newer *shmring.TooNewError
	switch r, err := a.openKept(f); {
	case err == nil:
		r.Close()
	case errors.As(err, &newer): // a later heapcam can read it
		logs.Write(&a.cfg.Log, logs.KeptTooNew, logs.Err.Of(err), logs.Descriptor.Of(name))
		return true
	case scarce(err):
		return false
	default:
		if !errors.Is(err, errNothingLeft) {
			logs.Write(&a.cfg.Log, logs.KeptDropped, logs.Err.Of(err), logs.Descriptor.Of(name))
		}
		a.dropRing(name)
		return true
	}
	a.open(ctx, name, true, func() (*shmring.Ring, error) { return a.openKept(f) })
	return false
}

// scarce says that an error is about this process (descriptors, memory) and not about the ring.
func scarce(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// recorded finds the recording below Out that an agent before began of a session. It names the JVM, which a JVM that
// has ended no longer does. uid is the owner of the ring: recordings of other users are left out.
func (a *Agent) recorded(session string, uid int) (whose, bool) {
	es, err := os.ReadDir(a.cfg.Out)
	if err != nil {
		return whose{}, false
	}
	for _, e := range es {
		if w, ok := whoseRecording(filepath.Join(a.cfg.Out, e.Name())); ok && w.Session == session && w.UID == uid {
			return w, true
		}
	}
	return whose{}, false
}
