package agent

import (
	"errors"
	"time"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/shmring"
)

// deadAfter is how long a process must be missing before its ring is removed. It is searched at the beginning and at
// the end of that time.
var deadAfter = 10 * time.Second

// removeDead removes the file of a ring that nobody will read any more, once its JVM has ended: a quarantined ring, or
// one that was never finished. Such a file occupies memory. A ring that a later heapcam could read stays.
func (a *Agent) removeDead(path string) {
	a.mu.Lock()
	e := a.sessions[path]
	if e == nil || e.s != nil || e.orphan || !e.opening.IsZero() || !unreadable(e.last) ||
		time.Now().Before(e.recheck) {
		a.mu.Unlock()
		return
	}
	first := e.recheck.IsZero()
	e.recheck = time.Now().Add(deadAfter)
	a.mu.Unlock()
	pid, ticks, ok := shmring.ParseName(path)
	if !ok {
		return
	}
	if _, lives := findProcess(pid, ticks, 0); lives || first {
		return
	}
	for _, p := range []string{path, path + shmring.NextSuffix} {
		switch removed, err := shmring.Remove(p); {
		case err != nil:
			logs.Write(a.ringLog(p), logs.RingNotRemoved, logs.Err.Of(err), logs.Path.Of(p))
		case removed:
			logs.Write(a.ringLog(p), logs.RingRemoved, logs.Path.Of(p))
		}
	}
}

func unreadable(err error) bool {
	var bad *shmring.ViolationError
	var not *shmring.NotRingError
	return errors.As(err, &bad) || errors.As(err, &not) || errors.Is(err, shmring.ErrNotReady)
}
