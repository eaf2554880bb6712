// Package history follows classes and allocation sites along a window: what of each lived after each collection, what
// survived k collections, and how long objects live.
//
// Terms: a *series* is the history of one site, kept as changes, so that a site that rests costs nothing; a *floor* is
// a collection after which no sample of a dead object is left in old space (full ones and remarks).
//
// Tracker takes in each collection once, in order, and belongs to one goroutine. The leak detector and the comparison
// of two recordings are built on it.
package history

import (
	"cmp"
	"math"
	"slices"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/heap/samples"
	"github.com/heapcam/heapcam/trace"
)

const (
	// so many decided collections make a series of their own; where there are fewer, a series has its events
	SparseMost = 24
	// seconds after its allocation that an object must be seen alive, to count though only one collection has seen it
	Lasting = 5
)

// Survived is how many collections an object must have survived to count in the histories that verdicts are made of.
const Survived = 2

// Series is the history of a site: what its live samples that survived k collections stand for, after each collection
// from their first one on. Only changes are kept, so that a site that rests costs nothing.
type Series struct {
	// numbers of collections; nearly ascending, since k more collections decide whether a sample counts from its first
	// one on
	At      []int32
	Bytes   []float64
	Samples []int32 // changes

	LiveSamples int32
	LiveBytes   float64
	most        int32   // samples at any time
	Taken       float64 // samples, whether they survived or not
	Objects     float64 // that they stand for
	Allocated   float64 // their bytes
	Born, died  float64 // samples that ever survived k collections, and those of them that died

	Events []Event // while collections are few (sparse.go)
	Last   float64 // when the newest sample was taken
	Pause  float64 // the longest time between two
	Births []Birth // samples taken before each collection (deaths.go of analysis/leak)
	// when the samples were allocated that live at the end of the window, ascending; Survivors fills it
	Survived []float64
	Aged     []Age // after floors (age.go)
}

// Add changes the series by n samples that stand for so many bytes, from collection i on.
func (s *Series) Add(i, n int32, bytes float64) {
	if n > 0 {
		s.Born += float64(n)
	} else {
		s.died -= float64(n)
	}
	s.LiveSamples += n
	s.LiveBytes += bytes
	s.most = max(s.most, s.LiveSamples)
	if k := len(s.At); k > 0 && s.At[k-1] == i {
		s.Bytes[k-1] += bytes
		s.Samples[k-1] += n
		return
	}
	s.At, s.Bytes, s.Samples = append(s.At, i), append(s.Bytes, bytes), append(s.Samples, n)
}

// Scale multiplies the bytes of a series.
func (s *Series) Scale(f float64) {
	for i := range s.Bytes {
		s.Bytes[i] *= f
	}
	s.LiveBytes *= f
}

// Spread writes bytes and samples after each of len(bytes) collections.
func (s *Series) Spread(bytes, samples []float64) {
	clear(bytes)
	clear(samples)
	for k, i := range s.At {
		if int(i) < len(bytes) {
			bytes[i] += s.Bytes[k]
			samples[i] += float64(s.Samples[k])
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

// Tracker makes the series of all sites of a window.
type Tracker struct {
	k      int
	Times  []float64 // seconds of each collection's end
	From   float64   // when the window began, in seconds
	first  uint64    // number of its first collection
	To     float64   // when the newest sample was taken
	Newest uint64    // number of the newest collection
	// numbers of collections after which no sample of a dead object is left in old space: full ones and remarks
	Floors []int32
	Live   []float64 // exact bytes of the state, −1 where it is not known
	Sites  map[sites.Key]*Series
	young  samples.ByID[first] // live samples that have not survived k collections
	class  map[uint64]sites.Class
	fast   map[[2]uint64]*Series // sites by frame and type, of known types
	moved  []uint64              // numbers of the newest k collections that moved objects
	MovedN []int32               // the same ones by their place in the window
	Alloc  []float64             // bytes allocated up to each collection
	used   uint64                // after the newest one
	Full   int
	Major  int // concurrent cycles over the whole heap
	Missed uint64
	Mixed  int
	clock  clock
	dead   map[uint64]bool // samples that a reference listing did not reach, and that no collection has freed yet
	agedAt float64         // when the newest ages were taken
}

// first says since when a sample is known.
type first struct {
	s     *heap.Sample
	at    int32
	t     float64 // when it was allocated
	lasts bool    // is in the events
}

func NewTracker(k int) *Tracker {
	return &Tracker{k: k, Sites: map[sites.Key]*Series{}, class: map[uint64]sites.Class{},
		fast: map[[2]uint64]*Series{}, dead: map[uint64]bool{}}
}

func (h *Tracker) Key(r *heap.Symbols, s *heap.Sample) sites.Key {
	cl, ok := h.class[s.Type]
	if !ok {
		if cl = sites.ClassOf(r, uint32(s.Type)).Folded(); r.Types[s.Type].ID != 0 {
			h.class[s.Type] = cl
		}
	}
	return sites.Key{Frame: s.Frame, Class: cl}
}

// site gives the series of a sample's site.
func (h *Tracker) site(r *heap.Symbols, s *heap.Sample) *Series {
	at := [2]uint64{s.Frame, s.Type}
	if x := h.fast[at]; x != nil {
		return x
	}
	k := h.Key(r, s)
	x := h.Sites[k]
	if x == nil {
		x = &Series{}
		h.Sites[k] = x
	}
	if _, known := h.class[s.Type]; known {
		h.fast[at] = x
	}
	return x
}

// Collection takes in what r found in c. It must see each collection of the window once, in order.
func (h *Tracker) Collection(r *heap.Cursor, c *heap.Collection) {
	i := len(h.Times)
	h.begin(c)
	h.Newest = c.GC
	h.Missed += c.Missed()
	t := float64(c.End()) / 1e9
	if i > 0 {
		t = max(t, h.Times[i-1])
	}
	h.Times = append(h.Times, t)
	h.Live = append(h.Live, -1)
	if c.Known {
		h.Live[i] = float64(c.Bytes)
	}
	switch c.Kind {
	case trace.PauseFull:
		h.Full++
		h.Floors = append(h.Floors, int32(i))
	case trace.PauseRemark:
		h.Floors = append(h.Floors, int32(i))
	case trace.PauseMixed:
		h.Mixed++
	case trace.PauseMajor:
		h.Major++
		h.Floors = append(h.Floors, int32(i))
		h.Live[i] = float64(c.Used) // the best that is known
	}
	k := c.Kind
	// Of concurrent cycles a major one alone says of an object that was young before it whether it lives.
	moving := k == trace.PauseYoung || k == trace.PauseMixed || k == trace.PauseFull || k == trace.PauseUnknown ||
		k == trace.PauseMajor
	if moving {
		if len(h.moved) == h.k {
			h.moved, h.MovedN = slices.Delete(h.moved, 0, 1), slices.Delete(h.MovedN, 0, 1)
		}
		h.moved, h.MovedN = append(h.moved, c.GC), append(h.MovedN, int32(i))
	}
	h.allocated(c, i)
	for _, s := range r.Sampled {
		x := h.site(r.Symbols, s)
		x.Sampled(s.Birth, h.bornAt(s), i < mostPhases)
		h.To = max(h.To, x.Last)
		x.Objects += s.Weight
		x.Allocated += s.Weight * float64(s.Size)
		h.clock.add(h.bornAt(s), s.Weight*float64(s.Size))
	}
	for _, s := range r.Resolved {
		since := int32(i)
		if s.Birth < h.first { // a sync point of a window whose begin is gone names it: it was there all the time
			since = 0
		}
		h.young.Put(s.ID, first{s: s, at: since, t: h.bornAt(s)})
		h.site(r.Symbols, s).survived(s.Birth)
	}
	h.forsake(r, int32(i))
	for _, s := range r.Died {
		if h.dead[s.ID] {
			delete(h.dead, s.ID)
			continue
		}
		f := h.young.Get(s.ID)
		young := f.s != nil
		h.young.Delete(s.ID)
		x, bytes := h.site(r.Symbols, s), float64(s.Size)*s.Weight
		if !young {
			x.Add(int32(i), -1, -bytes)
		}
		if !young || f.lasts {
			h.Event(x, Event{h.diedAt(s, c, i), -bytes, -1, h.bornAt(s)})
		}
	}
	h.grow(r.Symbols, t, moving)
	if n := len(h.Floors); n > 0 && int(h.Floors[n-1]) == i && t-h.From >= agedLater*(h.agedAt-h.From) {
		h.age(r, t)
	}
}

// grow adds the young samples to their series that have survived as many collections as that asks for, and those that
// have lasted: t is the time of the newest collection, which moved objects or not.
func (h *Tracker) grow(r *heap.Symbols, t float64, moving bool) {
	survived := func(f first) bool { return len(h.moved) == h.k && f.s.Birth <= h.moved[0] }
	var older []uint64
	for id, f := range h.young.All() {
		if survived(f) || !f.lasts && moving && t-f.t >= Lasting {
			older = append(older, id)
		}
	}
	slices.Sort(older) // so that sums of weights come out the same each time
	for _, id := range older {
		f := h.young.Get(id)
		x, bytes := h.site(r, f.s), float64(f.s.Size)*f.s.Weight
		if !f.lasts {
			h.Event(x, Event{T: f.t, N: 1, Bytes: bytes})
			f.lasts = true
			h.young.Put(id, f)
		}
		if survived(f) {
			h.young.Delete(id)
			x.Add(f.at, 1, bytes)
		}
	}
}

// allocated takes in what was allocated before c, the i-th collection.
func (h *Tracker) allocated(c *heap.Collection, i int) {
	before := uint64(0)
	for _, s := range c.Spaces {
		before += s.UsedBefore
	}
	sum := float64(before - min(before, h.used))
	if i > 0 {
		sum += h.Alloc[i-1]
	}
	h.Alloc = append(h.Alloc, sum)
	if len(c.Spaces) > 0 { // else the next one counts for both
		h.used = c.Used
	}
}

// forsake takes in that the recorder has given up half of the samples that it watched, and that the others stand for
// twice as many: r has doubled their weights.
func (h *Tracker) forsake(r *heap.Cursor, i int32) {
	if !r.Doubled {
		return
	}
	for _, s := range r.Left {
		if h.young.Get(s.ID).s == nil {
			x := h.site(r.Symbols, s)
			x.Add(i, -1, -float64(s.Size)*s.Weight)
			x.Born, x.died = x.Born-1, x.died-1 // it did not die
		}
		h.young.Delete(s.ID)
	}
	for s := range sites.ByID(r.Live.Values()) {
		if h.young.Get(s.ID).s == nil {
			h.site(r.Symbols, s).Add(i, 0, float64(s.Size)*s.Weight/2)
		}
	}
}

// Decided is of how many collections it is known which of their survivors survived k: all but the newest.
func (h *Tracker) Decided() int {
	if len(h.MovedN) < h.k {
		return 0
	}
	return int(h.MovedN[0]) + 1
}

// Sum adds up the series of sites.
func (h *Tracker) Sum(ks []sites.Key) *Series {
	total := &Series{}
	for _, k := range ks {
		s := h.Sites[k]
		total.At, total.Bytes, total.Samples = append(
			total.At,
			s.At...), append(
			total.Bytes,
			s.Bytes...), append(
			total.Samples,
			s.Samples...)
		total.Survived = append(total.Survived, s.Survived...)
		total.Aged = append(total.Aged, s.Aged...)
		total.Events, total.Births = append(total.Events, s.Events...), append(total.Births, s.Births...)
		total.Last = max(total.Last, s.Last)
		total.Taken += s.Taken
		total.Objects += s.Objects
		total.Allocated += s.Allocated
		total.Born += s.Born
		total.died += s.died
		total.LiveSamples += s.LiveSamples
		total.LiveBytes += s.LiveBytes
	}
	total.Pause = h.pause(ks, total.Last)
	slices.Sort(total.Survived)
	total.Aged = sumAges(total.Aged)
	n := make([]float64, len(h.Times))
	total.Spread(make([]float64, len(h.Times)), n)
	total.most = int32(slices.Max(n))
	return total
}

// pause is the longest time without a sample of several series together: at most that of any that had samples up to the
// last. What began or ended at another time says nothing of the others.
func (h *Tracker) pause(ks []sites.Key, last float64) float64 {
	const enough = 10 // samples
	most, least := 0.0, math.Inf(1)
	for _, k := range ks {
		s := h.Sites[k]
		most = max(most, s.Pause)
		if s.Taken >= enough && s.Last+2*s.Pause >= last {
			least = min(least, s.Pause)
		}
	}
	return min(most, least)
}

// Weight is the share of what was allocated at a site that has survived: where most dies, what is left is rather
// forgotten than leaked.
func (s *Series) Weight() float64 {
	if s.Taken == 0 {
		return 1
	}
	return min(1, s.Born/s.Taken)
}

// Lasts is how many of the samples of a series that last there were at any time.
func (s *Series) Lasts() int32 {
	slices.SortStableFunc(s.Events, func(a, b Event) int { return cmp.Compare(a.T, b.T) })
	n, most := 0.0, 0.0
	for _, e := range s.Events {
		n += e.N
		most = max(most, n)
	}
	return max(s.most, int32(most))
}
