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
		percent(f.after, maxHeap))
}

// LastKnown is what is known of a JVM when it ended without an end marker, or when its recording ends.
type LastKnown struct {
	Time    uint64  // of the end, ns since the probe began
	MaxHeap uint64  // bytes; 0: not known
	Process Process // memory of the JVM's process, the newest that is known; RSS may be 0
	Killed  *Killed // what the kernel killed meanwhile; nil: nothing, or that is not known
}

// End says why a JVM that ended without a word ended, as far as the kernel and the heap show it: the kernel killed it,
// the heap was full (Cause), or it was not. "": neither is known.
func (f *FullHeap) End(l LastKnown) string {
	if l.Killed != nil {
		return l.Killed.String() + f.withRoom(l.MaxHeap) + l.process("; ")
	}
	if why := f.Cause(l.MaxHeap); why != "" {
		return why
	}
	if !f.any || l.MaxHeap == 0 || float64(f.last) > roomShare*float64(l.MaxHeap) {
		return ""
	}
	return fmt.Sprintf("not the heap: the last collection left %.0f %% of its maximum in use",
		percent(f.last, l.MaxHeap)) + l.process(", and ")
}

// withRoom says what the heap was like when the kernel killed the JVM; "": nothing is known.
func (f *FullHeap) withRoom(maxHeap uint64) string {
	share := percent(f.last, maxHeap)
	switch {
	case !f.any || maxHeap == 0:
		return ""
	case f.Cause(maxHeap) != "":
		return fmt.Sprintf("; the heap was full as well: the last full collection left %.0f %% of its maximum in use",
			percent(f.after, maxHeap))
	case float64(f.last) <= roomShare*float64(maxHeap):
		return fmt.Sprintf("; the heap was not full: the last collection left %.0f %% of its maximum in use", share)
	}
	return fmt.Sprintf("; the last collection left %.0f %% of the heap's maximum in use", share)
}

// process gives the memory of the process, and how old the figures are: it may have grown since.
func (l *LastKnown) process(join string) string {
	p := &l.Process
	if p.RSS == 0 {
		return ""
	}
	text := fmt.Sprintf("%s%s before the end the process had %d MiB resident", join, before(l.Time, p.Time), p.RSS>>20)
	if p.Limit > 0 {
		text += fmt.Sprintf("; its container used %.0f %% of %d MiB", percent(min(p.Used, 2*p.Limit), p.Limit),
			p.Limit>>20)
	}
	return text
}

// before gives how long before the time end, ns, the time at was, a second at least: no figure is of the end itself.
func before(end, at uint64) string {
	s := max((max(end, at)-at+5e8)/1e9, 1)
	if s < 120 {
		return fmt.Sprintf("%d s", s)
	}
	return fmt.Sprintf("%d min", s/60)
}

func percent(part, whole uint64) float64 { return 100 * float64(part) / float64(whole) }
