package analysis

import (
	"io"
	"time"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// Footprint is what memory the JVM's process took at a time of the window, in bytes; 0: not known.
type Footprint struct {
	Time      time.Time `json:"time"`               // when it was read
	RSS       uint64    `json:"rss_bytes"`          // resident
	Anon      uint64    `json:"anonymous_bytes"`    // of RSS: not of files
	Swap      uint64    `json:"swap_bytes"`         // swapped out
	Threads   uint64    `json:"threads"`            // of the process
	Heap      uint64    `json:"heap_bytes"`         // committed
	Metaspace uint64    `json:"metaspace_bytes"`    // used by classes
	Code      uint64    `json:"code_bytes"`         // compiled since the JVM's start, what was freed included
	Classes   uint64    `json:"classes"`            // loaded
	Limit     uint64    `json:"cgroup_limit_bytes"` // of the memory cgroup
	Used      uint64    `json:"cgroup_used_bytes"`  // by the whole memory cgroup
}

// Process is the memory of the JVM's process over the window.
type Process struct {
	First Footprint `json:"first"`          // of the window
	Last  Footprint `json:"last"`           // of the window
	Peak  uint64    `json:"peak_rss_bytes"` // largest RSS
	// java.nio.DirectByteBuffer objects after the first known collection: their memory is not in the heap
	DirectFirst uint64 `json:"direct_buffers_first"`
	DirectLast  uint64 `json:"direct_buffers_last"` // the same after the last
}

// directBuffer is the class whose objects stand for memory outside the heap.
const directBuffer = "java/nio/DirectByteBuffer"

// process gives what the recording says of the process' memory, nil if it says nothing.
func process(r *heap.Cursor, first, last []heap.Count) *Process {
	if len(r.Process) == 0 {
		return nil
	}
	at := func(p *trace.Process) Footprint {
		return Footprint{Time: collection.Wall(r.Symbols, p.Time), RSS: p.RSS, Anon: p.Anon, Swap: p.Swap,
			Threads: p.Threads, Heap: p.Heap, Metaspace: p.Metaspace, Code: p.Code, Classes: p.Classes,
			Limit: p.Limit, Used: p.Used}
	}
	out := &Process{First: at(&r.Process[0]), Last: at(&r.Process[len(r.Process)-1])}
	for i := range r.Process {
		out.Peak = max(out.Peak, r.Process[i].RSS)
	}
	count := func(of []heap.Count) (n uint64) {
		for id, c := range of {
			if c.Objects > 0 && r.Types[uint64(id)].Name == directBuffer {
				n += c.Objects
			}
		}
		return n
	}
	out.DirectFirst, out.DirectLast = count(first), count(last)
	return out
}

// write prints it, first → last. What did not change is printed once.
func (p *Process) write(w io.Writer) {
	bytes := func(a, b uint64) ui.Flow { return firstToLast(ui.Bytes(a), ui.Bytes(b)) }
	count := func(a, b uint64) ui.Flow { return firstToLast(ui.Count(a), ui.Count(b)) }
	ui.Section(w, "Memory of the process (first → last)")
	limit := ui.Flow("")
	if p.Last.Limit > 0 {
		limit = ui.Flowf("; its container used %s of %s", ui.Flow(ui.Bytes(p.Last.Used)),
			ui.Flow(ui.Bytes(p.Last.Limit)))
	}
	ui.Field(w, "Resident", ui.Flowf("%s; at most %s%s", bytes(p.First.RSS, p.Last.RSS), ui.Flow(ui.Bytes(p.Peak)),
		limit))
	if p.Last.Heap > 0 {
		ui.Field(w, "Heap", "committed "+bytes(p.First.Heap, p.Last.Heap))
	}
	if p.Last.Metaspace > 0 {
		ui.Field(w, "Classes", count(p.First.Classes, p.Last.Classes))
		ui.Field(w, "Metaspace", bytes(p.First.Metaspace, p.Last.Metaspace))
	}
	if p.Last.Code > 0 {
		ui.Field(w, "Compiled code", ui.Flowf("%s since the JVM started, what was freed included",
			ui.Flow(ui.Bytes(p.Last.Code))))
	}
	ui.Field(w, "Threads", count(p.First.Threads, p.Last.Threads))
	if p.DirectLast > 0 {
		ui.Field(w, "Direct buffers", ui.Flowf("%s; their memory is not in the heap",
			count(p.DirectFirst, p.DirectLast)))
	}
}

// firstToLast writes a figure of the first and of the last moment.
func firstToLast(a, b string) ui.Flow {
	if a == b {
		return ui.Flow(a) + ", unchanged"
	}
	return ui.Flow(a) + " → " + ui.Flow(b)
}
