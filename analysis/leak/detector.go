package leak

import (
	"slices"

	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// detector follows a window: the series of its sites, and what may hold their objects.
type detector struct {
	*history.Tracker
	Options
	arrays map[uint32]*lengths // of arrays of references, by type
	nodes  []uint64            // objects of linked collections after each collection
	node   map[uint32]bool     // types that are theirs
	tables tables              // hash tables and their nodes
	late   bool                // the recording began after its JVM
	// collections after which the heap state is not known
	unknown   int
	bySamples int          // those of them that were recorded at depth samples
	resolved  int          // samples that were seen alive at that depth
	begun     []heap.Count // of a recording that began late: the first state by type,
	floor1    []heap.Count // that after the first collection of old space,
	floor2    []heap.Count // and after the newest; nil: not known
	counts    bool         // the reader is a census: lengths of arrays are not known
	// Of a recording that began with a sample of each object, a detector that gets fewer of them, as if the interval
	// had been longer all the time, and those; nil: there is none. thin: this is it.
	thinned *detector
	samples *heap.Thinned
	thin    bool
	exact   exactly                 // of the candidate that is judged
	liveOf  map[sites.Class]float64 // bytes that live samples stand for; nil: not asked for yet
	// of sampling, the longest and the shortest one of the window, and the sum of all times their seconds
	interval uint64
	newest   uint64    // the interval after the last collection
	every    []float64 // the interval after each collection, at least 1
	least    uint64
	sampled  float64
	watched  bool                       // a random part of the samples is followed (ZGC, Shenandoah, Epsilon)
	last     []heap.Count               // the newest known state by type
	spaces   []spaceUse                 // after each collection
	figures  map[sites.Key]*sites.Tally // of sites at the end, as far as their classes have so much; nil: not known
	callers  sites.Callers              // by samples; only where objects have a site of one frame
	living   *living                    // bySite; nil: not asked for yet
	early    []heap.Count               // the first known state by type, after the collection
	earlyAt  uint64                     // with this number
	levels   levels                     // exact counts after collections of old space
	alive    levels                     // exact counts of what reference listings found alive
	listed   []uint64                   // the collections before these
	full     *Full                      // the heap was full
	fullness trace.FullHeap
	first    uint64  // number of the first collection
	listings int     // reference listings that say what lives
	listedAt float64 // when the newest was taken
	until    float64 // when the recording ended; 0: not known
	Open     bool    // the verdicts depend on lengths of arrays, which a census lacks: a Replay is needed
}

// Detector is a detector for other packages. Its Report may be asked for after any collection.
type Detector = detector

// NewDetector makes a detector that has seen no collection.
func NewDetector() *Detector { return newDetector(false) }

func newDetector(thin bool) *detector {
	return &detector{thin: thin, Tracker: history.NewTracker(history.Survived), arrays: map[uint32]*lengths{},
		Options: Options{MinGrowth: DefaultMinGrowth}, node: map[uint32]bool{},
		tables: tables{node: map[uint32]int{}, table: map[uint32]int{}}}
}

// Collection takes in what r found in c. It must see each collection of the window once, in order.
func (h *detector) Collection(r *heap.Cursor, c *heap.Collection) {
	i := len(h.Times)
	if i == 0 {
		h.first = c.GC
		if c.Interval == 0 && !h.thin && !trace.Concurrent(r.JVM.Collector) {
			h.thinned, h.samples = newDetector(true), heap.Thin(trace.MinInterval)
			h.thinned.Options = h.Options
		}
	}
	if h.thinned != nil {
		h.samples.Follow(r.Samples)
		h.thinned.Collection(h.thinly(r), c)
	}
	h.Tracker.Collection(r, c)
	listed := false
	if h.Unreached != nil {
		if dead, at := h.Unreached(c.GC); dead != nil {
			h.Listing(r, dead, at)
			h.listings++
			listed = true
			h.listed = append(h.listed, c.GC)
			if h.Alive != nil {
				h.alive.put(at, h.Alive(c.GC))
			}
		}
	}
	if r.HasSited() {
		h.callers.Follow(r)
	}
	_, follows := r.Totals.(*heap.State)
	h.counts = !follows
	h.late = r.JVM.Flags&trace.JVMAtStart == 0
	interval := c.Interval
	if h.thin {
		interval = max(interval, trace.MinInterval)
	}
	h.interval, h.newest = max(h.interval, interval), interval
	h.every = append(h.every, float64(max(1, interval)))
	if n := max(1, interval); h.least == 0 || n < h.least { // 0: each object is a sample
		h.least = n
	}
	since := h.From
	if i > 0 {
		since = h.Times[i-1]
	}
	h.sampled += float64(interval) * max(0, h.Times[i]-since)
	before, _, _, _, _ := trace.InUse(c.Spaces)
	h.fullness.Pause(&c.Pause, before, c.Used)
	h.spaces = append(h.spaces, spaceUse{c.GC, c.Kind, c.Used, h.fullness.Futile()})
	h.watched = trace.Concurrent(r.JVM.Collector)
	h.nodes = append(h.nodes, 0)
	if i > 0 {
		h.nodes[i] = h.nodes[i-1]
	}
	h.tables.begin(i, c.Known)
	if !c.Known && !h.watched {
		h.unknown++
		if c.Depth == trace.DepthSamples {
			h.bySamples++
			h.resolved += len(r.Resolved)
		}
	}
	if c.Known {
		h.last = append(h.last[:0], r.Totals.PerType()...)
		if h.early == nil {
			h.early, h.earlyAt = slices.Clone(h.last), c.GC
		}
		h.levels.add(c, h.Times[i], h.last)
		h.census(r, listed || c.Kind == trace.PauseFull || c.Kind == trace.PauseRemark)
		h.containers(r, i)
	}
}

// thinly gives r with fewer samples: those of the longer interval.
func (h *detector) thinly(r *heap.Cursor) *heap.Cursor {
	x := *r
	x.Samples = h.samples.Tracker
	return &x
}

// Listing takes in a reference listing, as the tracker does.
func (h *detector) Listing(r *heap.Cursor, dead map[uint64]bool, at float64) {
	h.Tracker.Listing(r, dead, at)
	h.listedAt = at
}

// stormLeast is how many collections of old space in which the program hardly allocates make a storm: the heap is full.
const stormLeast = 5

// calm is how many collections, of the first n, there were before a storm at their end in which the program came to
// nothing: when less than a twentieth of all is allocated in more than a tenth of the time.
func (h *detector) calm(n int) int {
	if h.full != nil && h.full.UntilEnd {
		n = min(n, h.full.at+1)
	}
	if n < fewestPoints || len(h.Alloc) < n {
		return n
	}
	i, _ := slices.BinarySearch(h.Alloc[:n], 0.95*h.Alloc[n-1])
	storm := 0
	for _, f := range h.Floors {
		if int(f) > i && int(f) < n {
			storm++
		}
	}
	if i+1 >= fewestPoints && storm >= stormLeast && h.Times[n-1]-h.Times[i] > (h.Times[n-1]-h.Times[0])/10 {
		return i + 1
	}
	return n
}
