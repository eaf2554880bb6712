package session

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/shmring"
)

// StuckAfter is how long the disk may take to answer before that is reported.
const StuckAfter = 5 * time.Second

// shared is what other goroutines than the session's see of it.
type shared struct {
	mu     sync.Mutex // guards status
	status Status     // written by the session's goroutine

	busy  atomic.Int64 // since when the session may be waiting for the disk, Unix ns; 0: it is not
	bytes atomic.Int64 // of the agent's memory, about
	evict atomic.Bool  // the session shall end
	log   zerolog.Logger
	kept  string // name by which the service manager keeps the ring; "": it does not; never changes
}

// set changes the status.
func (s *shared) set(f func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.status)
}

// Update changes the status; f must not keep the pointer.
func (s *shared) Update(f func(*Status)) { s.set(f) }

// count changes the losses in the status and returns them.
func (s *shared) count(f func(*Drops)) Drops {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.status.Dropped)
	return s.status.Dropped
}

// Status returns what is known of the session now.
func (s *shared) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status
	if d := s.Stuck(); d > 0 {
		st.StoreError, st.StuckNS = "the disk has not answered for "+d.String(), uint64(d)
	}
	return st
}

// UID returns the user whose the ring is, -1: not known. It never changes.
func (s *shared) UID() int { return s.status.UID }

// ID returns the name of the ring folder. It never changes.
func (s *shared) ID() string { return s.status.ID }

// Dir returns the ring folder. It never changes.
func (s *shared) Dir() string { return s.status.Dir }

// doing notes that the session does something that may have to wait for the disk, until the returned function is
// called.
func (s *shared) doing() (done func()) {
	s.busy.Store(time.Now().UnixNano())
	return func() { s.busy.Store(0) }
}

// Stuck returns how long the disk has kept the session waiting; 0 as long as that is less than StuckAfter.
func (s *shared) Stuck() time.Duration {
	if since := s.busy.Load(); since != 0 {
		if d := time.Since(time.Unix(0, since)); d > StuckAfter {
			return d.Round(time.Second)
		}
	}
	return 0
}

// Bytes returns what the session holds of the agent's memory, about.
func (s *shared) Bytes() int64 { return s.bytes.Load() }

// Evict makes Run return quota.ErrEvicted soon.
func (s *shared) Evict() { s.evict.Store(true) }

// Evicted says whether Evict was called.
func (s *shared) Evicted() bool { return s.evict.Load() }

// Detach asks the probe to stop. by names who wants it, "": nobody that can be named.
func (s *Session) Detach(by string) error {
	s.set(func(st *Status) { st.DetachedBy = by })
	return s.ring.Detach()
}

// Hurry makes the session store what there is without waiting for more: somebody waits for its end.
func (s *Session) Hurry() { s.ring.Hurry() }

// Ended says whether the JVM or its recording has ended, though the ring may not be drained yet.
func (s *Session) Ended() bool {
	life, err := s.ring.Alive()
	return err == nil && (life == shmring.Ended || life == shmring.Gone)
}

// Kept returns the name by which the service manager keeps the ring; "": it does not.
func (s *shared) Kept() string { return s.kept }

// Log returns the log of the session's JVM. It is bounded, as one JVM must not fill the log by what it does.
func (s *shared) Log() *zerolog.Logger { return &s.log }
