package agent

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/shmring"
)

// ErrNoRing says that no shared ring of a JVM appeared in time.
var ErrNoRing = errors.New("the JVM's shared ring did not appear")

// RefusedError says that the probe does not record a JVM.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// orphanAfter is how long Await waits for the ring of a JVM in the watched folders. Then it searches the JVM's
// mappings: where the folder has no room the probe creates its ring elsewhere, maybe without a name.
const orphanAfter = 500 * time.Millisecond

// Await waits until the JVM with that pid (as we count) and start is recorded, and gives its session. Errors: ErrNoRing
// when ctx is over before; *RefusedError; why a ring that is there cannot be recorded (*StoreError, package
// shmring's). Run must be running.
func (a *Agent) Await(ctx context.Context, pid int, startTicks uint64) (session.Status, error) {
	begun, orphan := time.Now(), "ring of "+strconv.Itoa(pid)
	defer a.forget(orphan) // what came to nothing
	for {
		a.Rescan()
		changed := a.Changed()
		for _, s := range a.Of(pid, startTicks, -1) {
			if s.Phase == session.Refused || s.Phase == session.ProbeStopped {
				return s, &RefusedError{s.Reason}
			}
			if !s.Phase.Over() {
				return s, nil
			}
		}
		if time.Since(begun) > orphanAfter {
			a.takeOver(orphan, pid)
		}
		select {
		case <-ctx.Done():
			if err := a.why(pid, startTicks, orphan); err != nil {
				return session.Status{}, err
			}
			return session.Status{}, fmt.Errorf("%w: %w", ErrNoRing, ctx.Err())
		case <-changed:
		case <-time.After(pollFast):
		}
	}
}

// why says what kept a ring of the JVM from being recorded; nil: there was none.
func (a *Agent) why(pid int, startTicks uint64, orphan string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for path, e := range a.sessions {
		if e.last == nil || errors.Is(e.last, shmring.ErrNotReady) {
			continue
		}
		ns, ticks, ok := shmring.ParseName(path)
		if host, found := findProcess(ns, ticks, 0); path == orphan ||
			ok && ticks == startTicks && found && host == pid {
			return e.last
		}
	}
	return nil
}
