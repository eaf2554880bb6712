package session

import (
	"time"

	"github.com/heapcam/heapcam/trace"
)

// alarms watches for what freezes an incident by itself.
type alarms struct {
	storm storm
	oom   exhaustion
	full  trace.FullHeap
	stale bool   // the newest full collection, or a later one, is not listed
	cause string // why a JVM that sent no end marker ended, as far as known

	process trace.Process // memory of the JVM's process, the newest that is known
	kills   kills         // what the kernel killed for want of memory
}

// causeTime is how long after its last collection a JVM's end may be noticed, to be explained by it.
const causeTime = 30 * time.Second

// pause takes in a pause and the bytes in use before and after it.
func (a *alarms) pause(p *trace.Pause, before, after uint64) (storm bool) {
	a.full.Pause(p, before, after)
	a.stale = a.stale || p.Kind == trace.PauseFull || p.Flags&trace.PauseLeftOut != 0
	return a.storm.pause(p)
}

// ended takes note of an end without an end marker at the time now, ns of the stream; maxHeap is in bytes. killed is
// what the kernel killed meanwhile, nil: nothing.
func (a *alarms) ended(now, maxHeap uint64, killed *trace.Killed) {
	if at, last := a.full.Ended(); killed == nil && last && now >= at+uint64(causeTime) {
		return
	}
	a.cause = a.full.End(trace.LastKnown{Time: now, MaxHeap: maxHeap, Process: a.process, Killed: killed})
}

// Cause says why a JVM that ended without an end marker most likely ended, after Run; "": nothing is known.
func (s *Session) Cause() string { return s.alarms.cause }

// exhaustion finds the beginning of a burst of allocations that failed: a program that catches its OutOfMemoryErrors
// repeats them.
type exhaustion struct {
	seen uint64
	at   time.Time // of the newest
}

// exhaustionCalm is how long none may come before the next one counts as a new burst. The probe does not listen for a
// minute after each.
const exhaustionCalm = 2 * time.Minute

// observe takes the number of failed allocations so far.
func (x *exhaustion) observe(now time.Time, n uint64) (onset bool) {
	if n <= x.seen {
		return false
	}
	onset = now.Sub(x.at) > exhaustionCalm
	x.seen, x.at = n, now
	return onset
}

// storm finds the onset of a GC storm: full collections take more than stormShare of stormSpan. It reports it once
// until they have fallen below half of that.
type storm struct {
	full []trace.Pause // of the last stormSpan, oldest first
	sum  uint64
	in   bool
}

const (
	stormSpan  = uint64(60 * time.Second)
	stormShare = 0.5
	stormLeast = 3 // full collections
	// stormMost bounds those that are remembered: times are the JVM's word, and all may be within one stormSpan.
	stormMost = 1 << 14
)

// begins gives the storm that begins at the time at.
func (s *storm) begins(at uint64) trace.Storm {
	return trace.Storm{Time: at, Span: min(at, stormSpan), Collections: uint64(len(s.full)), NS: s.sum}
}

// pause takes in a pause.
func (s *storm) pause(p *trace.Pause) (onset bool) {
	if p.Kind == trace.PauseFull {
		s.full = append(s.full, trace.Pause{Start: p.Start, Dur: p.Dur})
		s.sum += p.Dur
	}
	for len(s.full) > stormMost || len(s.full) > 0 && s.full[0].Start+s.full[0].Dur+stormSpan < p.Start+p.Dur {
		s.sum -= s.full[0].Dur
		s.full = s.full[1:]
	}
	share := float64(s.sum) / float64(stormSpan)
	switch {
	case !s.in && share > stormShare && len(s.full) >= stormLeast:
		s.in = true
		return true
	case s.in && share < stormShare/2:
		s.in = false
	}
	return false
}
