// Package check compares what a recording says twice, for `heapcam verify`: a replay that only counts with one that
// follows objects, and summaries with the replay. A difference is an error of heapcam. Each check counts the
// differences and keeps the first one.
package check

import (
	"fmt"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/heap"
)

// CountCheck compares a replay that only counts with one that follows objects. Make one with Counts.
type CountCheck struct {
	Compared  uint64 // collections
	Swept     uint64 // of Compared: since a Remark or Cleanup, so that what lives was not compared
	Different uint64 // collections of which the two say something else
	First     string // the first of them

	counter *heap.Census
	since   collection.SinceSweep
	lost    bool // the two are not at one place any more
}

// Counts begins with counter at the start of the recording.
func Counts(counter *heap.Census) *CountCheck { return &CountCheck{counter: counter} }

// Collection compares. It must get each collection c that r, the replay that follows objects, gives.
func (k *CountCheck) Collection(r *heap.Replay, c *heap.Collection) {
	if k.lost {
		return
	}
	k.since.Of(r)(c)
	n, err := k.counter.Next()
	if err != nil || n.GC != c.GC {
		k.lost = true
		k.differs("collection %d: the counting replay is elsewhere: %v", c.GC, err)
		return
	}
	if k.counter.Unsure {
		k.lost = true
		return
	}
	k.Compared++
	type row struct {
		known, synced          bool
		samples                int
		sampled, taken, exists uint64
	}
	mine, its := row{c.Known, c.Synced, c.LiveSamples, c.SampledBytes, r.Taken, c.Used}, row{n.Known, n.Synced,
		n.LiveSamples, n.SampledBytes, k.counter.Taken, n.Used}
	if c.Partial || n.Partial { // all is counted before all is listed
		mine.known, its.known = false, false
	}
	switch {
	case mine != its:
		k.differs("collection %d: %+v, counted %+v", c.GC, mine, its)
	case !c.Known || !n.Known:
	case k.since.Swept:
		k.Swept++
	case c.Objects != n.Objects || c.Bytes != n.Bytes:
		k.differs("collection %d: %d objects and %d bytes, counted %d and %d", c.GC, c.Objects, c.Bytes, n.Objects,
			n.Bytes)
	default:
		k.types(c.GC, r.State.PerType(), k.counter.Totals.PerType())
	}
}

func (k *CountCheck) types(gc uint64, a, b []heap.Count) {
	for id := range max(len(a), len(b)) {
		var x, y heap.Count
		if id < len(a) {
			x = a[id]
		}
		if id < len(b) {
			y = b[id]
		}
		if x != y {
			k.differs("collection %d: %d objects and %d bytes of type %d, counted %d and %d", gc, x.Objects, x.Bytes,
				id, y.Objects, y.Bytes)
			return
		}
	}
}

func (k *CountCheck) differs(format string, args ...any) {
	if k.Different++; k.Different == 1 {
		k.First = fmt.Sprintf(format, args...)
	}
}
