package trace

import "fmt"

// FullHeap recognises from a JVM's collections that it has run out of heap. With ExitOnOutOfMemoryError or
// CrashOnOutOfMemoryError it ends before it can say so.
type FullHeap struct {
	fulls  uint64 // full collections in a row
	futile bool   // the newest was futile
	after  uint64 // bytes in use after the newest of them
	end    uint64 // when that ended, ns since the probe began
	last   uint64 // bytes in use after the newest collection of any kind
	any    bool   // there was one
}

// fullShare is from which share of the heap on, in use after a full collection, it counts as full.
const fullShare = 0.9

// futileShare is the same if that collection and the one before were futile: with Parallel a survivor space, which
// counts as heap, is never used.
const futileShare = 0.7

// roomShare is up to which share of the heap, in use after the last collection, it surely had room.
const roomShare = 0.7

// Pause takes in a pause, and the bytes in use before and after it. Stops of heapcam's own are no collections.
func (f *FullHeap) Pause(p *Pause, before, after uint64) {
	switch p.Kind {
	case PauseFull:
		f.futile = f.fulls > 0 && forRoom[p.Cause] && before <= f.after+f.after/1000 && after >= before-before/100
		f.fulls, f.after, f.end = f.fulls+1, after, p.Start+p.Dur
	case PauseWalk, PauseRemark, PauseCleanup:
	default:
		f.fulls, f.futile = 0, false
	}
	if p.Kind != PauseWalk {
		f.last, f.any = after, true
	}
}

// forRoom are the causes of collections that make room for an allocation, by the names that HotSpot gives them.
var forRoom = map[string]bool{"Allocation Failure": true, "Ergonomics": true, "G1 Compaction Pause": true,
	"G1 Evacuation Pause": true, "G1 Humongous Allocation": true}

// Futile says that the newest collection was a full one for an allocation, after another full one since which nothing
// could be allocated, and freed hardly anything: the allocation failed.
func (f *FullHeap) Futile() bool { return f.futile }

// Ended says when the newest full collection ended, ns since the probe began, and whether it was the last collection.
func (f *FullHeap) Ended() (at uint64, last bool) { return f.end, f.fulls > 0 }

// Cause says why a JVM that ended without a word most likely ended, where its last collection left a heap of at most
// maxHeap bytes full; "": it did not. (A JVM whose main thread dies of an OutOfMemoryError may not be able to say its
// end: that takes an object.)
func (f *FullHeap) Cause(maxHeap uint64) string {
	share := fullShare
	if f.futile {
		share = futileShare
	}
	if f.fulls == 0 || maxHeap == 0 || float64(f.after) < share*float64(maxHeap) {
		return ""
	}
	return fmt.Sprintf("the last full collection left the heap %.0f %% full: out of memory, most likely "+
		"(an OutOfMemoryError that ended the program, ExitOnOutOfMemoryError, CrashOnOutOfMemoryError or a kill)",
		100*float64(f.after)/float64(maxHeap))
}

// End says why a JVM that ended without a word ended, as far as its heap of at most maxHeap bytes shows it: the heap
// was full (Cause), or it was not. p is the memory of its process, the newest that is known; its RSS may be 0. "": the
// heap shows neither.
func (f *FullHeap) End(maxHeap uint64, p Process) string {
	if why := f.Cause(maxHeap); why != "" {
		return why
	}
	if !f.any || maxHeap == 0 || float64(f.last) > roomShare*float64(maxHeap) {
		return ""
	}
	text := fmt.Sprintf("not the heap: the last collection left %.0f %% of its maximum in use",
		100*float64(f.last)/float64(maxHeap))
	if p.RSS == 0 {
		return text
	}
	text += fmt.Sprintf(", and the process had %d MiB resident", p.RSS>>20)
	if p.Limit > 0 {
		text += fmt.Sprintf("; its container used %.0f %% of %d MiB", 100*float64(min(p.Used, 2*p.Limit))/
			float64(p.Limit), p.Limit>>20)
	}
	return text
}
