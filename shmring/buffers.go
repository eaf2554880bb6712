package shmring

import (
	"math/bits"
	"slices"
	"sync"
	"time"
)

const (
	// smallBuffer and largeBuffer bound the buffers that are shared, bytes: below, each ring keeps its own; above, the
	// rare large block must not hold its memory.
	smallBuffer = 64 << 10
	largeBuffer = 32 << 20
	// keptBuffers bounds how many buffers wait for the next ring, and keepBuffers for how long after the last one that
	// needed any. Fresh memory costs more than the copy into it: the system has to find, clear and map each page.
	keptBuffers = 4
	keepBuffers = 10 * time.Second
)

// bufferPool holds the buffers that no ring needs now: a JVM at rest holds none, and one that collects does not make a
// new one for each collection.
//
// Owner: the process. Concurrency: any goroutine. What is in it is dropped when nobody has asked for keepBuffers.
type bufferPool struct {
	mu    sync.Mutex
	free  [][]byte
	asked bool // since the timer was set
	timed bool // a timer is set
}

var buffers bufferPool

// get gives a buffer of at least n bytes and at most about most.
func (p *bufferPool) get(n, most uint64) []byte {
	p.mu.Lock()
	p.asked = true
	best := -1
	for i, b := range p.free {
		c := uint64(cap(b))
		if c >= n && c <= most && (best < 0 || c < uint64(cap(p.free[best]))) {
			best = i
		}
	}
	if best >= 0 {
		b := p.free[best]
		p.free = slices.Delete(p.free, best, best+1)
		p.mu.Unlock()
		return b
	}
	p.mu.Unlock()
	return make([]byte, min(most, uint64(1)<<bits.Len64(n-1)))
}

// put takes a buffer back, unless it is small or very large. The largest ones stay.
func (p *bufferPool) put(b []byte) {
	if cap(b) <= smallBuffer || cap(b) > largeBuffer {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, b)
	if len(p.free) > keptBuffers {
		least := 0
		for i, b := range p.free {
			if cap(b) < cap(p.free[least]) {
				least = i
			}
		}
		p.free = slices.Delete(p.free, least, least+1)
	}
	p.watch()
}

// watch sets the timer that frees buffers nobody has used for a while. The caller holds mu.
func (p *bufferPool) watch() {
	if p.timed {
		return
	}
	p.timed, p.asked = true, false
	time.AfterFunc(keepBuffers, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.timed = false
		switch {
		case p.asked:
			p.watch()
		default:
			p.free = nil
		}
	})
}
