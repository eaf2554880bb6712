package analysis

import (
	"slices"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// survived is how many collections an object must have survived to count in the histories that verdicts are made of.
const survived = 2

// series is the history of a site: what its live samples that survived k collections stand for, after each collection from their first one on. Only
// changes are kept, so that a site that rests costs nothing.
type series struct {
	at      []int32 // numbers of collections; nearly ascending, since k more collections decide whether a sample counts from its first one on
	bytes   []float64
	samples []int32 // changes

	liveSamples int32
	liveBytes   float64
	most        int32   // samples at any time
	taken       float64 // samples, whether they survived or not
	objects     float64 // that they stand for
	allocated   float64 // their bytes
	came, went  float64 // samples that ever survived k collections, and those of them that died

	events []event // while collections are few (sparse.go)
	last   float64 // when the newest sample was taken
	pause  float64 // the longest time between two
	births []birth // samples taken before each collection (fate.go)
}

// add changes the series by n samples that stand for so many bytes, from collection i on.
func (s *series) add(i, n int32, bytes float64) {
	if n > 0 {
		s.came += float64(n)
	} else {
		s.went -= float64(n)
	}
	s.liveSamples += n
	s.liveBytes += bytes
	s.most = max(s.most, s.liveSamples)
	if k := len(s.at); k > 0 && s.at[k-1] == i {
		s.bytes[k-1] += bytes
		s.samples[k-1] += n
		return
	}
	s.at, s.bytes, s.samples = append(s.at, i), append(s.bytes, bytes), append(s.samples, n)
}

// spread writes bytes and samples after each of len(bytes) collections.
func (s *series) spread(bytes, samples []float64) {
	clear(bytes)
	clear(samples)
	for k, i := range s.at {
		if int(i) < len(bytes) {
			bytes[i] += s.bytes[k]
			samples[i] += float64(s.samples[k])
		}
	}
	for i := 1; i < len(bytes); i++ {
		bytes[i] += bytes[i-1]
		samples[i] += samples[i-1]
		if samples[i] == 0 {
			bytes[i] = 0 // what rounding left
		}
	}
}

// histories are those of all sites of a window.
type histories struct {
	k      int
	times  []float64 // seconds of each collection's end
	from   float64   // when the window began, in seconds
	to     float64   // when the newest sample was taken
	newest uint64    // number of the newest collection
	floors []int32   // numbers of collections after which no sample of a dead object is left in old space: full ones and remarks
	live   []float64 // exact bytes of the state, −1 where it is not known
	sites  map[siteKey]*series
	young  map[uint64]first // live samples that have not survived k collections
	class  map[uint64]Class
	fast   map[[2]uint64]*series // sites by frame and type, of known types
	moved  []uint64              // numbers of the newest k collections that moved objects
	movedN []int32               // the same ones by their place in the window
	alloc  []float64             // bytes allocated up to each collection
	used   uint64                // after the newest one
	arrays map[uint32]*lengths   // of arrays of references, by type
	nodes  []uint64              // objects of linked collections after each collection
	node   map[uint32]bool       // types that are theirs
	tables tables                // hash tables and their nodes
	late   bool                  // the recording began after its JVM
	begun  []heap.Count          // of a recording that began late: the first state by type,
	floor1 []heap.Count          // that after the first collection of old space,
	floor2 []heap.Count          // and after the newest; nil: not known
	full   int
	missed uint64
	mixed  int
	counts bool // the replay only counts: lengths of arrays are not known
	open   bool // the verdicts rest on lengths of arrays that are not known: then they are no verdicts
}

// first says since when a sample is known.
type first struct {
	s     *heap.Sample
	at    int32
	t     float64 // when it was allocated
	lasts bool    // is in the events
}

func newHistories(k int) *histories {
	return &histories{k: k, sites: map[siteKey]*series{}, young: map[uint64]first{}, class: map[uint64]Class{}, fast: map[[2]uint64]*series{}, arrays: map[uint32]*lengths{}, node: map[uint32]bool{},
		tables: tables{node: map[uint32]int{}, table: map[uint32]int{}}}
}

func (h *histories) key(r *heap.Symbols, s *heap.Sample) siteKey {
	cl, ok := h.class[s.Type]
	if !ok {
		if cl = ClassOf(r, uint32(s.Type)).folded(); r.Types[s.Type].ID != 0 {
			h.class[s.Type] = cl
		}
	}
	return siteKey{s.Frame, cl}
}

// site gives the series of a sample's site.
func (h *histories) site(r *heap.Symbols, s *heap.Sample) *series {
	at := [2]uint64{s.Frame, s.Type}
	if x := h.fast[at]; x != nil {
		return x
	}
	k := h.key(r, s)
	x := h.sites[k]
	if x == nil {
		x = &series{}
		h.sites[k] = x
	}
	if _, known := h.class[s.Type]; known {
		h.fast[at] = x
	}
	return x
}

// collection takes in what r found in c. It must see each collection of the window once, in order.
func (h *histories) collection(r *heap.Cursor, c *heap.Collection) {
	i := len(h.times)
	h.begin(c)
	h.newest = c.GC
	h.missed += c.Missed()
	_, follows := r.Totals.(*heap.State)
	h.counts = !follows
	h.late = r.JVM.Flags&trace.JVMAtStart == 0
	t := float64(c.Start+c.Dur) / 1e9
	if i > 0 {
		t = max(t, h.times[i-1])
	}
	h.times = append(h.times, t)
	h.live = append(h.live, -1)
	h.nodes = append(h.nodes, 0)
	if i > 0 {
		h.nodes[i] = h.nodes[i-1]
	}
	h.tables.begin(i, c.Known)
	if c.Known {
		h.live[i] = float64(c.Bytes)
		h.census(r, c)
		h.containers(r, i)
	}
	switch c.Kind {
	case trace.PauseFull:
		h.full++
		h.floors = append(h.floors, int32(i))
	case trace.PauseRemark:
		h.floors = append(h.floors, int32(i))
	case trace.PauseMixed:
		h.mixed++
	}
	k := c.Kind
	moving := k == trace.PauseYoung || k == trace.PauseMixed || k == trace.PauseFull || k == trace.PauseUnknown
	if moving {
		if len(h.moved) == h.k {
			h.moved, h.movedN = slices.Delete(h.moved, 0, 1), slices.Delete(h.movedN, 0, 1)
		}
		h.moved, h.movedN = append(h.moved, c.GC), append(h.movedN, int32(i))
	}
	before := uint64(0)
	for _, s := range c.Spaces {
		before += s.UsedBefore
	}
	sum := float64(before - min(before, h.used))
	if i > 0 {
		sum += h.alloc[i-1]
	}
	h.alloc = append(h.alloc, sum)
	if len(c.Spaces) > 0 { // else the next one counts for both
		h.used = c.Used
	}
	for _, s := range r.Sampled {
		x := h.site(r.Symbols, s)
		x.took(s.Birth, h.bornAt(s), i < mostPhases)
		h.to = max(h.to, x.last)
		x.objects += s.Weight
		x.allocated += s.Weight * float64(s.Size)
	}
	for _, s := range r.Resolved {
		h.young[s.ID] = first{s: s, at: int32(i), t: h.bornAt(s)}
	}
	for _, s := range r.Died {
		f, young := h.young[s.ID]
		delete(h.young, s.ID)
		x, bytes := h.site(r.Symbols, s), float64(s.Size)*s.Weight
		if !young {
			x.add(int32(i), -1, -bytes)
		}
		if !young || f.lasts {
			h.event(x, event{h.diedAt(s, c, i), -bytes, -1, h.bornAt(s)})
		}
	}
	for id, f := range h.young {
		survived := len(h.moved) == h.k && f.s.Birth <= h.moved[0]
		if !survived && (f.lasts || !moving || t-f.t < lasting) {
			continue
		}
		x, bytes := h.site(r.Symbols, f.s), float64(f.s.Size)*f.s.Weight
		if !f.lasts {
			h.event(x, event{t: f.t, n: 1, bytes: bytes})
			f.lasts = true
			h.young[id] = f
		}
		if survived {
			delete(h.young, id)
			x.add(f.at, 1, bytes)
		}
	}
}

// stormLeast is how many collections of old space in which the program hardly allocates make a storm: the heap is full.
const stormLeast = 5

// calm is how many collections, of the first n, there were before a storm at their end in which the program came to nothing: when less than
// a twentieth of all is allocated in more than a tenth of the time.
func (h *histories) calm(n int) int {
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

// decided is of how many collections it is known which of their survivors survived k: all but the newest.
func (h *histories) decided() int {
	if len(h.movedN) < h.k {
		return 0
	}
	return int(h.movedN[0]) + 1
}
