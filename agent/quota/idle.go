package quota

import (
	"sync"
	"time"
)

// idleEvery is how often Idle asks the system.
const idleEvery = time.Second

// Idle measures how many CPUs of the host have nothing to do. The zero value is ready.
//
// Owner: the agent. Concurrency: any goroutine.
type Idle struct {
	mu    sync.Mutex
	at    time.Time
	was   cpuTimes
	cpus  float64
	known bool

	read func() (cpuTimes, bool) // nil: the system's
}

// cpuTimes are sums over all CPUs since the host started, in any unit.
type cpuTimes struct {
	idle, all uint64
	cpus      int
}

// CPUs gives how many were idle on average of the last second or more, as /proc/stat says. known is false before that
// is measured, and on systems that do not say.
func (i *Idle) CPUs(now time.Time) (cpus float64, known bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.at.IsZero() && now.Sub(i.at) < idleEvery {
		return i.cpus, i.known
	}
	read := i.read
	if read == nil {
		read = readCPUTimes
	}
	t, ok := read()
	if all := t.all - i.was.all; ok && t.all > i.was.all && t.idle >= i.was.idle && !i.at.IsZero() {
		i.cpus, i.known = float64(t.idle-i.was.idle)/float64(all)*float64(t.cpus), true
	} else if !ok {
		i.known = false
	}
	i.at, i.was = now, t
	return i.cpus, i.known
}

// Spare gives what of most CPUs may be taken now: no more than are idle, and always a tenth of most.
func (i *Idle) Spare(now time.Time, most float64) float64 {
	if free, known := i.CPUs(now); known {
		return min(most, max(free, most/10))
	}
	return most
}
