package analysis

import (
	"io"
	"math"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// Watched is what a report knows of a JVM whose collector gives objects no address (ZGC, Shenandoah, Epsilon).
type Watched struct {
	Samples   uint64 `json:"samples"`   // chosen at random to be watched
	Live      int    `json:"live"`      // known to be no garbage at the end
	Undecided int    `json:"undecided"` // it is not known whether they are
	Pauses    uint64 `json:"pauses"`    // of all cycles
	LongestNS uint64 `json:"longest_pause_ns"`
	// what all samples stand for, by site, the most bytes first
	Allocated      []sites.Row `json:"allocated"`
	AllocatedBytes uint64      `json:"allocated_bytes"`
	EndedUnseen    int         `json:"cycles_without_end,omitempty"`
}

// reportSites is how many sites a report has.
const reportSites = 50

// watchedFollower gathers a report's Watched.
type watchedFollower struct {
	sum       Watched
	allocated *sites.Allocated
	watched   *sites.Watched
}

func (f *watchedFollower) follow(r *heap.Cursor, c *heap.Collection) {
	if f.allocated == nil {
		f.allocated, f.watched = sites.NewAllocated(), sites.NewWatched()
	}
	f.allocated.Add(r.Symbols, r.All)
	if trace.Concurrent(r.JVM.Collector) {
		f.watched.Add(r.Symbols, r.Sampled)
	}
	if y := c.Cycle; y != nil {
		f.sum.Pauses += y.Pauses
		f.sum.LongestNS = max(f.sum.LongestNS, y.Longest)
		if y.Flags&trace.CycleOpen != 0 {
			f.sum.EndedUnseen++
		}
	}
}

// done completes the report of a recording without addresses.
func (f *watchedFollower) done(rep *Report, r *heap.Cursor) {
	if !trace.Concurrent(r.JVM.Collector) {
		return
	}
	w := f.sum
	w.Samples, w.Live, w.Undecided = r.WatchedTaken, r.Live.Len(), r.Undecided()
	w.Allocated = []sites.Row{}
	if f.allocated != nil {
		w.Allocated, w.AllocatedBytes = f.allocated.Rows(r.Symbols, reportSites), f.allocated.Bytes()
	}
	rep.Watched = &w
	rep.UnknownGCs = 0
	if f.watched != nil {
		rep.Sites = f.watched.Rows(r.Symbols, r.Live, rep.mostLive(), reportSites)
	}
}

// mostLive bounds the bytes of the objects that are known to live at the end: when the last cycle decided which do, all
// of them were in use. Minor cycles and readings decide, too, so what was in use at any time since counts.
func (rep *Report) mostLive() uint64 {
	most := uint64(0)
	for _, c := range slices.Backward(rep.Collections) {
		most = max(most, c.Used)
		if c.Kind == trace.PauseKindNames.String(trace.PauseMajor) {
			break
		}
	}
	switch {
	case most > 0:
		return most
	case rep.MaxHeap > 0:
		return rep.MaxHeap
	}
	return math.MaxUint64
}

// frees says whether the collector ever frees an object.
func (rep *Report) frees() bool { return rep.Collector != collectors[trace.CollectorEpsilon] }

// cycles are the collections of a report but for mere readings.
func (rep *Report) cycles() (cycles, readings int) {
	for _, c := range rep.Collections {
		if c.Kind == trace.PauseKindNames.String(trace.PauseReading) {
			readings++
		}
	}
	return len(rep.Collections) - readings, readings
}

// writeWatched prints what the figures of such a recording rest on.
func (rep *Report) writeWatched(w io.Writer) {
	x := rep.Watched
	ui.Section(w, "What the figures rest on")
	ui.Field(w, "Samples", ui.Flowf("%d allocations, each with its site", rep.Samples))
	if rep.SitesCut != "" {
		ui.Datum(w, "Sites cut", ui.Prose(rep.SitesCut))
	}
	ui.Field(w, "Watched", ui.Flowf("%d of them, chosen at random, to learn which live: %d live at the end, %d "+
		"not decided yet", x.Samples, x.Live, x.Undecided))
	ui.Field(w, "Not known", ui.Flowf("which classes live, and how many objects: heapcam does not read the heap of a "+
		"JVM with %s", ui.Flow(rep.Collector)))
	ui.Field(w, "Missing", rep.missing())
	if x.EndedUnseen > 0 {
		ui.Field(w, "Unfinished", ui.Flow(ui.Plural(uint64(x.EndedUnseen), "cycle"))+" had not ended when the "+
			"recording did")
	}
	if cycles, _ := rep.cycles(); rep.OldCollections == 0 && rep.frees() && cycles > 0 {
		ui.Field(w, "Major cycles", "none in this recording: it is not known which objects live")
	}
}

// writeWatchedSites prints which sites have most live bytes, and which allocated most.
func (rep *Report) writeWatchedSites(w io.Writer) {
	estimatedSites(w, rep.Sites,
		"Allocation sites with the most live bytes at the end (estimated from watched samples)")
	estimatedSites(w, rep.Watched.Allocated, "Allocation sites that allocated most (estimated from all samples)")
}

func estimatedSites(w io.Writer, rows []sites.Row, title ui.Flow) {
	c := ui.NewColumns(2, ">BYTES", ">95 % INTERVAL", "CLASS AND ALLOCATION SITE")
	rows = rows[:min(5, len(rows))]
	for i, at := range classesAt(rows, classAt) {
		s := rows[i]
		c.Row(ui.Bytes(s.Bytes), ui.Flowf("%s to %s", ui.Flow(ui.Bytes(s.BytesLow)), ui.Flow(ui.Bytes(s.BytesHigh))),
			at)
	}
	if c.Len() > 0 {
		ui.Section(w, title)
		c.Write(w)
	}
}

// collectionsText says in words how many collections of which kinds there were; ks are the kinds.
func (rep *Report) collectionsText(ks []string, syncs uint64) ui.Flow {
	first, last := &rep.Collections[0], &rep.Collections[len(rep.Collections)-1]
	kinds := ui.Flow(strings.Join(ks, ", "))
	if rep.Watched == nil {
		return ui.Flowf("%d (%s), numbers %d to %d; %d with a full listing (sync points)", len(rep.Collections), kinds,
			first.GC, last.GC, syncs)
	}
	cycles, readings := rep.cycles()
	also := ui.Flow("")
	if readings > 0 {
		reading := " " + trace.PauseKindNames.String(trace.PauseReading)
		ks = slices.DeleteFunc(ks, func(k string) bool { return strings.HasSuffix(k, reading) })
		kinds = ui.Flow(strings.Join(ks, ", "))
		also = ui.Flowf(", and in between heapcam read the samples %s", ui.Flow(ui.Plural(uint64(readings), "time")))
	}
	return ui.Flowf("%s (%s)%s; numbers %d to %d", ui.Flow(ui.Plural(uint64(cycles), "concurrent cycle")), kinds, also,
		first.GC, last.GC)
}
