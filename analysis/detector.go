package analysis

import (
	"slices"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// detector follows a window: the series of its sites, and what may hold their objects.
type detector struct {
	*tracker
	arrays map[uint32]*lengths // of arrays of references, by type
	nodes  []uint64            // objects of linked collections after each collection
	node   map[uint32]bool     // types that are theirs
	tables tables              // hash tables and their nodes
	late   bool                // the recording began after its JVM
	begun  []heap.Count        // of a recording that began late: the first state by type,
	floor1 []heap.Count        // that after the first collection of old space,
	floor2 []heap.Count        // and after the newest; nil: not known
	counts bool                // the replay only counts: lengths of arrays are not known
	open   bool                // the verdicts rest on lengths of arrays that are not known: then they are no verdicts
}

func newDetector() *detector {
	return &detector{tracker: newTracker(survived), arrays: map[uint32]*lengths{}, node: map[uint32]bool{},
		tables: tables{node: map[uint32]int{}, table: map[uint32]int{}}}
}

// collection takes in what r found in c. It must see each collection of the window once, in order.
func (h *detector) collection(r *heap.Replayer, c *heap.Collection) {
	i := len(h.times)
	h.tracker.collection(r, c)
	h.counts = r.Counts()
	h.late = r.JVM.Flags&trace.JVMAtStart == 0
	h.nodes = append(h.nodes, 0)
	if i > 0 {
		h.nodes[i] = h.nodes[i-1]
	}
	h.tables.begin(i, c.Known)
	if c.Known {
		h.census(r, c)
		h.containers(r, i)
	}
}

// stormLeast is how many collections of old space in which the program hardly allocates make a storm: the heap is full.
const stormLeast = 5

// calm is how many collections, of the first n, there were before a storm at their end in which the program came to nothing: when less than
// a twentieth of all is allocated in more than a tenth of the time.
func (h *detector) calm(n int) int {
	if n < leastPoints || len(h.alloc) < n {
		return n
	}
	i, _ := slices.BinarySearch(h.alloc[:n], 0.95*h.alloc[n-1])
	storm := 0
	for _, f := range h.floors {
		if int(f) > i && int(f) < n {
			storm++
		}
	}
	if i+1 >= leastPoints && storm >= stormLeast && h.times[n-1]-h.times[i] > (h.times[n-1]-h.times[0])/10 {
		return i + 1
	}
	return n
}
