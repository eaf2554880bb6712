package heap

import (
	"fmt"

	"github.com/heapcam/heapcam/trace"
)

// Findings is what is wrong or unusual in a stream.
type Findings struct {
	Faults []string // errors in what the stream says
	Damage []error  // blocks that could not be read
	Gaps   []trace.Gap
	End    *trace.End
	// Exhausted are the failed allocations that the recorder noted, Storms the GC storms; at most maxDistress of each.
	Exhausted []trace.Exhausted
	Storms    []trace.Storm
	// Process is the memory of the JVM's process over the window, at most maxProcess times, evenly.
	Process []trace.Process
	// Killed is the newest event of that name, nil if there is none. Noted is the newest time of a note or remark, ns
	// since the probe's start.
	Killed *trace.Killed
	Noted  uint64
	// Uncompacted says that listings may hold dead objects of regions that G1 on 17 did not compact: the probe could
	// not tell them.
	Uncompacted bool
	// Referenced says that the stream has a reference listing, at least one, from its first part to its last.
	Referenced bool
}

func (f *Findings) fault(format string, args ...any) {
	if len(f.Faults) < 1000 {
		f.Faults = append(f.Faults, fmt.Sprintf(format, args...))
	}
}

// refer takes in a part of a reference listing. A reader of references reports what is wrong in it.
func (r *Cursor) refer(b trace.Block) {
	if r.Referenced {
		return
	}
	p, err := trace.DecodeRefs(b)
	if err != nil {
		return
	}
	if p.HasAbout {
		r.listing, r.listed = p.Listing, p.About.Refused == ""
	}
	r.Referenced = r.listed && p.Listing == r.listing && p.Flags&trace.RefLast != 0
}
