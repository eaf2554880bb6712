package trace

import "fmt"

// FullHeap recognises from a JVM's collections that it has run out of heap. With ExitOnOutOfMemoryError or
// CrashOnOutOfMemoryError it ends before it can say so.
type FullHeap struct {
	fulls uint64 // full collections in a row
	after uint64 // bytes in use after the newest of them
	end   uint64 // when that ended, ns since the probe began
}

// fullShare is from which share of the heap on, in use after a full collection, it counts as full.
const fullShare = 0.9

// Pause takes in a pause and the bytes in use after it. Stops of heapcam's own are no collections.
func (f *FullHeap) Pause(kind, end, after uint64) {
	switch kind {
	case PauseFull:
		f.fulls, f.after, f.end = f.fulls+1, after, end
	case PauseWalk, PauseRemark, PauseCleanup:
	default:
		f.fulls = 0
	}
}

// Ended says when the newest full collection ended, ns since the probe began, and whether it was the last collection.
func (f *FullHeap) Ended() (at uint64, last bool) { return f.end, f.fulls > 0 }

// Cause says why a JVM that ended without a word most likely ended, where its last collection left a heap of at most
// maxHeap bytes full; "": it did not.
func (f *FullHeap) Cause(maxHeap uint64) string {
	if f.fulls == 0 || maxHeap == 0 || float64(f.after) < fullShare*float64(maxHeap) {
		return ""
	}
	return fmt.Sprintf("the last full collection left the heap %.0f %% full: out of memory, most likely "+
		"(ExitOnOutOfMemoryError, CrashOnOutOfMemoryError or a kill)", 100*float64(f.after)/float64(maxHeap))
}
