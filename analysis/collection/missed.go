package collection

import (
	"io"

	"github.com/heapcam/heapcam/internal/ui"
)

// MayCountDead says what heap.View.Uncompacted means.
const MayCountDead = "Objects may include dead ones: full collections left regions uncompacted, " +
	"and this JVM does not show which objects in them are dead."

// Missed says how many collections posted no events, and what follows from that; "" for none.
func Missed(n uint64) ui.Flow {
	if n == 0 {
		return ""
	}
	pauses := "their pauses are unknown"
	if n == 1 {
		pauses = "its pause is unknown"
	}
	return ui.Flowf("%s without events: %s. The JVM reports no events for the full collections of jcmd "+
		"GC.class_histogram and jcmd GC.heap_dump.", ui.Flow(ui.Plural(n, "collection")), ui.Flow(pauses))
}

// WriteMissed prints Missed, if there is any, behind label.
func WriteMissed(w io.Writer, label ui.Flow, indent int, n uint64) {
	if n > 0 {
		ui.Paragraph(w, label, indent, Missed(n))
	}
}
