package analysis

import (
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// Usage is what a collection adds to the curve of the heap over the window, in bytes. Eden to Humongous are in use
// after it, Archive among Old. Allocated is what was allocated since the collection before, nil where that one is not
// in the recording or another one came between.
type Usage struct {
	Eden      uint64  `json:"eden_bytes"`
	Survivor  uint64  `json:"survivor_bytes"`
	Old       uint64  `json:"old_bytes"`
	Humongous uint64  `json:"humongous_bytes"`
	Before    uint64  `json:"before_bytes"` // in use before it, all spaces
	Allocated *uint64 `json:"allocated_bytes"`
	Lost      uint64  `json:"lost_epochs,omitempty"` // collections lost since the one before
	// Missed are collections since the one before that posted no events. Their pauses, and what they left, are unknown.
	Missed uint64 `json:"missed_collections,omitempty"`
}

// known says whether the recording has the spaces: it has none if the probe could not read them.
func (row *CollectionRow) known() bool { return row.Used > 0 || row.Before > 0 }

// usageOf gives what c adds; before is the row of the collection before it in the recording, nil if there is none.
// Between two collections in use rises by what is allocated alone.
func usageOf(c *heap.Collection, before *CollectionRow) Usage {
	t := Usage{Lost: c.EpochsLost, Missed: c.Missed()}
	t.Before, t.Eden, t.Survivor, t.Humongous, t.Old = trace.InUse(c.Spaces)
	if before != nil && before.GC+1 == c.GC && t.Missed == 0 && len(c.Spaces) > 0 && before.known() {
		n := uint64(0)
		if t.Before > before.Used {
			n = t.Before - before.Used
		}
		t.Allocated = &n
	}
	return t
}
