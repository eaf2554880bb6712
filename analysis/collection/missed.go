package collection

import (
	"fmt"
	"io"

	"github.com/heapcam/heapcam/internal/ui"
)

// MayCountDead says what heap.View.Uncompacted means.
const MayCountDead = "objects may include dead ones: full collections left regions uncompacted, " +
	"and this JVM does not show which objects in them are dead"

// WriteMissed prints, if there is any, how many collections posted no events, and what follows from that.
func WriteMissed(w io.Writer, indent string, n uint64) {
	if n == 0 {
		return
	}
	few := fmt.Sprintf("%d missed collections", n)
	if n == 1 {
		few = "1 missed collection"
	}
	ui.Fprintf(w, "%s%s, pauses unknown: the JVM reports no events for the full collections of "+
		"jcmd GC.class_histogram and GC.heap_dump\n", ui.Text(indent), few)
}
