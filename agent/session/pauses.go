package session

import (
	"maps"
	"math"
	"sync"

	"github.com/heapcam/heapcam/trace"
)

// PauseSchema is the resolution of Pauses, as Prometheus's native histograms number it: 8 buckets from each power of
// two to the next, 9 % wide.
const PauseSchema = 3

// Bounds of the buckets: 1 µs and 1,024 s. So there are at most 241.
const (
	pauseZero  = 1e-6
	pauseFirst = -159 // the bucket above pauseZero
	pauseLast  = 80
)

// Pauses counts pauses by their length, seconds, since this agent began with the recording.
//
// Owner: the session. Concurrency: add by its goroutine, Each by any.
type Pauses struct {
	mu      sync.Mutex
	count   uint64
	zero    uint64 // shorter than a microsecond
	sum     float64
	buckets map[int]int64
}

// PausesOf gives the counts of some lengths, ns.
func PausesOf(lengths ...uint64) *Pauses {
	p := &Pauses{}
	for _, ns := range lengths {
		p.add(ns)
	}
	return p
}

// PauseCounts are the counts of Pauses at one time. Bucket i ends at 2^(i/8) seconds.
type PauseCounts struct {
	Count, Zero   uint64
	Sum           float64
	ZeroThreshold float64
	Buckets       map[int]int64
}

func (p *Pauses) add(ns uint64) {
	s := float64(min(ns, trace.MaxTime)) / 1e9
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	p.sum += s
	if s <= pauseZero {
		p.zero++
		return
	}
	if p.buckets == nil {
		p.buckets = map[int]int64{}
	}
	p.buckets[min(max(int(math.Ceil(math.Log2(s)*(1<<PauseSchema))), pauseFirst), pauseLast)]++
}

// Counts gives the counts now.
func (p *Pauses) Counts() PauseCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return PauseCounts{p.count, p.zero, p.sum, pauseZero, maps.Clone(p.buckets)}
}

// paused counts the pauses of an epoch: one, or those of a concurrent cycle.
func (p *Pauses) paused(e *trace.Epoch) {
	if p == nil {
		return
	}
	if !e.HasCycle {
		p.add(e.Pause.Dur)
	}
	for _, s := range e.Stops {
		p.add(s.Dur)
	}
}
