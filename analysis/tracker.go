package analysis

import (
	"cmp"
	"slices"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

const (
	sparseMost = 24 // so many decided collections make a series of their own; where there are fewer, a series has its events
	lasting    = 5  // seconds after its allocation that an object must be seen alive, to count though only one collection has seen it
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
	born, died  float64 // samples that ever survived k collections, and those of them that died

	events []event // while collections are few (sparse.go)
	last   float64 // when the newest sample was taken
	pause  float64 // the longest time between two
	births []birth // samples taken before each collection (fate.go)
}

// add changes the series by n samples that stand for so many bytes, from collection i on.
func (s *series) add(i, n int32, bytes float64) {
	if n > 0 {
		s.born += float64(n)
	} else {
		s.died -= float64(n)
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

// tracker makes the series of all sites of a window.
type tracker struct {
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
	full   int
	missed uint64
	mixed  int
}

// first says since when a sample is known.
type first struct {
	s     *heap.Sample
	at    int32
	t     float64 // when it was allocated
	lasts bool    // is in the events
}

func newTracker(k int) *tracker {
	return &tracker{k: k, sites: map[siteKey]*series{}, young: map[uint64]first{}, class: map[uint64]Class{}, fast: map[[2]uint64]*series{}}
}

func (h *tracker) key(r *heap.Replayer, s *heap.Sample) siteKey {
	cl, ok := h.class[s.Type]
	if !ok {
		if cl = ClassOf(r, uint32(s.Type)).folded(); r.Types[s.Type].ID != 0 {
			h.class[s.Type] = cl
		}
	}
	return siteKey{s.Frame, cl}
}

// site gives the series of a sample's site.
func (h *tracker) site(r *heap.Replayer, s *heap.Sample) *series {
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
func (h *tracker) collection(r *heap.Replayer, c *heap.Collection) {
	i := len(h.times)
	h.begin(c)
	h.newest = c.GC
	h.missed += c.Missed()
	t := float64(c.Start+c.Dur) / 1e9
	if i > 0 {
		t = max(t, h.times[i-1])
	}
	h.times = append(h.times, t)
	h.live = append(h.live, -1)
	if c.Known {
		h.live[i] = float64(c.Bytes)
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
	for _, s := range r.Took {
		x := h.site(r, s)
		x.took(s.Birth, h.bornAt(s), i < mostPhases)
		h.to = max(h.to, x.last)
		x.objects += s.Weight
		x.allocated += s.Weight * float64(s.Size)
	}
	for _, s := range r.Came {
		h.young[s.ID] = first{s: s, at: int32(i), t: h.bornAt(s)}
	}
	for _, s := range r.Went {
		f, young := h.young[s.ID]
		delete(h.young, s.ID)
		x, bytes := h.site(r, s), float64(s.Size)*s.Weight
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
		x, bytes := h.site(r, f.s), float64(f.s.Size)*f.s.Weight
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

// decided is of how many collections it is known which of their survivors survived k: all but the newest.
func (h *tracker) decided() int {
	if len(h.movedN) < h.k {
		return 0
	}
	return int(h.movedN[0]) + 1
}

// sum adds up the series of sites.
func (h *tracker) sum(ks []siteKey) *series {
	total := &series{}
	for _, k := range ks {
		s := h.sites[k]
		total.at, total.bytes, total.samples = append(total.at, s.at...), append(total.bytes, s.bytes...), append(total.samples, s.samples...)
		total.events, total.births = append(total.events, s.events...), append(total.births, s.births...)
		total.last, total.pause = max(total.last, s.last), max(total.pause, s.pause)
		total.taken += s.taken
		total.objects += s.objects
		total.allocated += s.allocated
		total.born += s.born
		total.died += s.died
		total.liveSamples += s.liveSamples
		total.liveBytes += s.liveBytes
	}
	n := make([]float64, len(h.times))
	total.spread(make([]float64, len(h.times)), n)
	total.most = int32(slices.Max(n))
	return total
}

// weight is the share of what was allocated at a site that has survived: where most dies, what is left is rather forgotten than leaked.
func (s *series) weight() float64 {
	if s.taken == 0 {
		return 1
	}
	return min(1, s.born/s.taken)
}

// lasts is how many of the samples of a series that last there were at any time.
func (s *series) lasts() int32 {
	slices.SortStableFunc(s.events, func(a, b event) int { return cmp.Compare(a.t, b.t) })
	n, most := 0.0, 0.0
	for _, e := range s.events {
		n += e.n
		most = max(most, n)
	}
	return max(s.most, int32(most))
}
