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
	came, went  float64 // samples that ever survived k collections, and those of them that died
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
	floors []int32   // numbers of collections after which no sample of a dead object is left in old space: full ones and remarks
	live   []float64 // exact bytes of the state, −1 where it is not known
	sites  map[siteKey]*series
	young  map[uint64]first // live samples that have not survived k collections
	class  map[uint64]Class
	moved  []uint64            // numbers of the newest k collections that moved objects
	movedN []int32             // the same ones by their place in the window
	alloc  []float64           // bytes allocated up to each collection
	used   uint64              // after the newest one
	arrays map[uint32]*lengths // of arrays of references, by type
	nodes  []uint64            // objects of linked collections after each collection
	node   map[uint32]bool     // types that are theirs
	late   bool                // the recording began after its JVM
	full   int
	mixed  int
}

// first says since when a sample is known.
type first struct {
	s  *heap.Sample
	at int32
}

func newHistories(k int) *histories {
	return &histories{k: k, sites: map[siteKey]*series{}, young: map[uint64]first{}, class: map[uint64]Class{}, arrays: map[uint32]*lengths{}, node: map[uint32]bool{}}
}

func (h *histories) key(r *heap.Replayer, s *heap.Sample) siteKey {
	cl, ok := h.class[s.Type]
	if !ok {
		if cl = ClassOf(r, uint32(s.Type)).folded(); r.Types[s.Type].ID != 0 {
			h.class[s.Type] = cl
		}
	}
	return siteKey{s.Frame, cl}
}

func (h *histories) site(k siteKey) *series {
	s := h.sites[k]
	if s == nil {
		s = &series{}
		h.sites[k] = s
	}
	return s
}

// collection takes in what r found in c. It must see each collection of the window once, in order.
func (h *histories) collection(r *heap.Replayer, c *heap.Collection) {
	i := len(h.times)
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
	if c.Known {
		h.live[i] = float64(c.Bytes)
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
	if k := c.Kind; k == trace.PauseYoung || k == trace.PauseMixed || k == trace.PauseFull || k == trace.PauseUnknown {
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
	h.alloc, h.used = append(h.alloc, sum), c.Used
	for _, s := range r.Took {
		h.site(h.key(r, s)).taken++
	}
	for _, s := range r.Came {
		h.young[s.ID] = first{s, int32(i)}
	}
	for _, s := range r.Went {
		if _, ok := h.young[s.ID]; ok {
			delete(h.young, s.ID)
			continue
		}
		h.site(h.key(r, s)).add(int32(i), -1, -float64(s.Size)*s.Weight)
	}
	if len(h.moved) < h.k {
		return
	}
	for id, f := range h.young {
		if f.s.Birth <= h.moved[0] {
			delete(h.young, id)
			h.site(h.key(r, f.s)).add(f.at, 1, float64(f.s.Size)*f.s.Weight)
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

// lengths says when arrays of a type first had a length.
type lengths struct {
	seen map[uint64]int32 // number of the collection
	rose map[uint64]rise  // when there last were more of them than before
	most []uint64         // the greatest length so far, where it changes
	at   []int32
}

type rise struct {
	n  uint64 // arrays
	at int32
}

// fewArrays of one length: with more, one more of them says nothing.
const fewArrays = 16

// Arrays of references shorter than leastArray hold too little to leak; of a type with more than maxLengths lengths no one asks for steps.
const (
	leastArray = 20
	maxLengths = 1 << 14
)

// linked are the classes of the JDK's linked collections, which hold what is put into them without any array.
var linked = map[string]bool{"java/util/LinkedList$Node": true, "java/util/TreeMap$Entry": true, "java/util/concurrent/ConcurrentSkipListMap$Node": true,
	"java/util/concurrent/ConcurrentLinkedQueue$Node": true, "java/util/concurrent/ConcurrentLinkedDeque$Node": true}

// containers looks for arrays of references that are longer than those before, and counts the nodes of linked collections.
func (h *histories) containers(r *heap.Replayer, i int) {
	nodes := uint64(0)
	for typ, n := range r.State.PerType() {
		is, ok := h.node[uint32(typ)]
		if !ok && n.Objects > 0 {
			is = linked[r.Types[uint64(typ)].Name]
			h.node[uint32(typ)] = is
		}
		if is {
			nodes += n.Objects
		}
	}
	h.nodes[i] = nodes
	r.State.Lengths(func(typ uint32, n, objects uint64) {
		if n < leastArray || r.Types[uint64(typ)].Flags&trace.TypeObjArray == 0 {
			return
		}
		a := h.arrays[typ]
		if a == nil {
			a = &lengths{seen: map[uint64]int32{}, rose: map[uint64]rise{}}
			h.arrays[typ] = a
		}
		if k := len(a.most); k == 0 || a.most[k-1] < n {
			a.most, a.at = append(a.most, n), append(a.at, int32(i))
		}
		if _, ok := a.seen[n]; !ok && len(a.seen) < maxLengths {
			a.seen[n] = int32(i)
		} else if x, ok := a.rose[n]; ok && x.n < objects {
			a.rose[n] = rise{objects, int32(i)}
			return
		}
		if len(a.rose) < maxLengths || a.rose[n].n > 0 {
			a.rose[n] = rise{objects, max(a.rose[n].at, a.seen[n])}
		}
	})
}

// holderGrows says whether an array of references grew all through the window, as those of a collection do into which more and more is put:
// the longest of its type is three times as long as after an eighth of the window, and longer than after two fifths of it; or it has become
// three times as long in the steps of library collections (half as long again, twice as long), the newest since then.
// So do the nodes of linked collections, if they are three times as many at the end as after a quarter of it, and half as many again as after half.
//
// factor is how many times as much there is to hold at the end as at the beginning. Of a window in which that is little, as one that was pulled
// later, less growth can be expected, and below two none: then nothing can be told, and it says true.
func (h *histories) holderGrows(factor float64) bool {
	if factor < 2 {
		return true
	}
	n := len(h.times)
	need, since := min(3, factor/2), 0.4 // what doubles has doubled since then, with a little to spare
	if factor < 6 {
		since = 0.125 // one step is all, whenever it was
	}
	if len(h.nodes) == n {
		at := func(share float64) uint64 {
			i, _ := slices.BinarySearch(h.times, h.times[0]+share*(h.times[n-1]-h.times[0]))
			return h.nodes[max(i-1, 0)]
		}
		if last := h.nodes[n-1]; last > 100 && float64(last) >= need*float64(at(0.25)) && (factor < 6 || 2*last >= 3*at(0.5)) {
			return true
		}
	}
	from, w := h.times[0], h.times[n-1]-h.times[0]
	time := func(i int32) float64 { return (h.times[i] - from) / w }
	for _, a := range h.arrays {
		early, half, last := uint64(0), uint64(0), a.most[len(a.most)-1]
		for k, m := range a.most {
			if t := time(a.at[k]); t <= since {
				half = m
				if t <= 0.125 {
					early = m
				}
			}
		}
		if last > half && float64(last) >= need*float64(early) && half > 0 {
			return true
		}
		for m, at := range a.seen {
			if x := a.rose[m]; time(at) <= 0.125 && x.n <= fewArrays && time(x.at) > since && a.grown(m, x.at, h.times, need) {
				return true
			}
			if time(at) > since && a.grown(m, at, h.times, need) || time(at) > 0.875 && h.each(a, m, at) {
				return true
			}
		}
	}
	return false
}

// grown says whether a library collection has grown to length m, need times as long as before: by half, or to double size (and 2), in each step.
// Lengths that there were early say nothing: others have them, too.
func (a *lengths) grown(m uint64, at int32, times []float64, need float64) bool {
	early := times[0] + (times[len(times)-1]-times[0])/8
	factor := 1.0
next:
	for factor < need {
		for _, y := range [...]uint64{(2*m + 2) / 3, 2 * m / 3, m / 2, (m - 2) / 2} {
			b, ok := a.seen[y]
			if !ok || y == 0 || y+y/2 != m && 2*y != m && 2*y+2 != m {
				continue
			}
			if times[b] <= early {
				if x := a.rose[y]; x.n > fewArrays || x.at >= at || times[x.at] <= early {
					m = y // whether it grew through this one can not be told
					continue next
				} else {
					b = x.at
				}
			}
			if b < at {
				factor *= float64(m) / float64(y)
				m, at = y, b
				continue next
			}
		}
		return false
	}
	return true
}

// each says whether length m is the newest of an array that is copied with each addition: in each quarter of the window it had the length
// that a steady growth from the JVM's start would give it.
func (h *histories) each(a *lengths, m uint64, at int32) bool {
	from, w := h.times[0], h.times[len(h.times)-1]-h.times[0]
	rate := float64(m) / h.times[at]
	var quarters [4]int
	for n, i := range a.seen {
		if d := float64(n) / h.times[i] / rate; d > 0.85 && d < 1.15 {
			quarters[min(3, int(4*(h.times[i]-from)/w))]++
		}
	}
	return slices.Min(quarters[:]) > 0
}
