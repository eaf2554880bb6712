package analysis

import (
	"fmt"
	"io"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// Course is what a collection adds to the course of the window, in bytes. Eden to Humongous are in use after it, Archive among Old. Allocated
// is what was allocated since the collection before, nil where that one is not in the recording or another one came between.
type Course struct {
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

// told says whether the probe told the spaces: it does not if it could not read them.
func (row *CollectionRow) told() bool { return row.Used > 0 || row.Before > 0 }

// MayCountDead says what heap.View.Uncompacted means.
const MayCountDead = "objects may include dead ones: full collections left regions uncompacted, and this JVM does not show which objects in them are dead"

// WriteMissed prints, if there is any, how many collections posted no events, and what follows from that.
func WriteMissed(w io.Writer, indent string, n uint64) {
	if n == 0 {
		return
	}
	few := fmt.Sprintf("%d missed collections", n)
	if n == 1 {
		few = "1 missed collection"
	}
	ui.Fprintf(w, "%s%s, pauses unknown: the JVM reports no events for the full collections of jcmd GC.class_histogram and GC.heap_dump\n", ui.Text(indent), few)
}

// courseOf gives what c adds; before is the row of the collection before it in the recording, nil if there is none. Between two collections
// in use rises by what is allocated alone.
func courseOf(c *heap.Collection, before *CollectionRow) Course {
	t := Course{Lost: c.EpochsLost, Missed: c.Missed()}
	t.Before, t.Eden, t.Survivor, t.Humongous, t.Old = trace.InUse(c.Spaces)
	if before != nil && before.GC+1 == c.GC && t.Missed == 0 && len(c.Spaces) > 0 && before.told() {
		n := uint64(0)
		if t.Before > before.Used {
			n = t.Before - before.Used
		}
		t.Allocated = &n
	}
	return t
}
