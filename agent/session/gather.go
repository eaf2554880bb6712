package session

import (
	"context"
	"time"

	"github.com/heapcam/heapcam/shmring"
)

const (
	// smallBacklog, smallPart and gatherMost: while the ring holds less than that, or than that part of itself, a
	// session waits at most so long for more: larger frames compress better, and each time that a process wakes up
	// costs about as much as the work it then finds. What waits in the ring survives the death of JVM and agent alike.
	smallBacklog = 512 << 10
	smallPart    = 8
	gatherMost   = 500 * time.Millisecond
	// glanceEvery is how often it looks meanwhile. All sessions do so at the same moments.
	glanceEvery = 100 * time.Millisecond
)

// gather waits until the ring holds enough to be worth a step, or something in it cannot wait: that is found at the
// second look, so that a JVM that always says so causes ten steps a second at most. Meanwhile the probe's cost stays
// governed, which needs nothing but the ring's counters.
func (s *Session) gather(ctx context.Context) error {
	until := time.Now().Add(gatherMost/2 + shmring.UntilTick(gatherMost/2)) // all sessions step together
	for first := true; ; first = false {
		h, err := s.ring.Status()
		if err != nil || h.Backlog() >= min(smallBacklog, h.Capacity/smallPart) || !time.Now().Before(until) ||
			h.State.Ended() || s.syncs.urgent() {
			return nil // step returns an error of the ring
		}
		if !first && (h.State != shmring.StateRecording || h.Exhausted > s.alarms.oom.seen) {
			return nil
		}
		if err := s.governIdle(h); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.ring.Hurried():
			return nil
		case <-time.After(shmring.UntilTick(glanceEvery)):
		}
	}
}
