package history

import (
	"slices"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// Birth counts the samples of a site that were taken in the phase before a collection, those of them that have survived
// one, and those that live at the end of the window, as far as is known.
type Birth struct {
	Gc                     uint64
	Taken, Survived, Alive float64
}

// mostPhases is how many phases' births are kept, from a window's start on: batches that end are found where old
// space is not collected, which does not last long.
const mostPhases = 4096

// Sampled counts a sample of the phase before collection gc, taken at t, in the births only if keep says so.
func (s *Series) Sampled(gc uint64, t float64, keep bool) {
	if s.Taken > 0 {
		s.Pause = max(s.Pause, t-s.Last)
	}
	s.Last = max(s.Last, t)
	s.Taken++
	if !keep {
		return
	}
	if n := len(s.Births); n > 0 && s.Births[n-1].Gc == gc {
		s.Births[n-1].Taken++
		return
	}
	s.Births = append(s.Births, Birth{Gc: gc, Taken: 1})
}

// survived counts a sample of the phase before collection gc that has survived one.
func (s *Series) survived(gc uint64) {
	if i, ok := s.birth(gc); ok {
		s.Births[i].Survived++
	}
}

// birth finds the births of the phase before collection gc.
func (s *Series) birth(gc uint64) (i int, ok bool) {
	return slices.BinarySearchFunc(s.Births, gc, func(b Birth, gc uint64) int { return int(int64(b.Gc) - int64(gc)) })
}

// Event is a change of a series at a time: a sample that lasts, or the death of one that did.
type Event struct {
	T, Bytes float64
	N        float64
	Born     float64 // when what died was allocated
}

// begin is when what the recording knows of allocations begins: where the program's phase before the first collection
// did.
func (h *Tracker) begin(c *heap.Collection) {
	if h.Times == nil {
		h.From, h.first = float64(min(c.PhaseStart, c.Start))/1e9, c.GC
	}
}

// bornAt is when a sample was allocated, as far as the window knows it. A sample of which only a sync point tells has
// no time, but the collection before which it was allocated: it gets any time since the one before, always the same.
func (h *Tracker) bornAt(s *heap.Sample) float64 {
	t := float64(s.Time) / 1e9
	if i := s.Birth - h.first; s.Time == 0 && s.Birth >= h.first && i < uint64(len(h.Times)) {
		from := h.From
		if i > 0 {
			from = h.Times[i-1]
		}
		t = from + anyOf(s)*(h.Times[i]-from)
	}
	return max(t, h.From)
}

// anyOf is evenly distributed over samples, from 0 to 1.
func anyOf(s *heap.Sample) float64 { return float64(s.ID*0x9e3779b97f4a7c15>>11) / (1 << 53) }

// diedAt is a time for the death of a sample that collection c, the i-th, did not find: any since the one before,
// always the same for it. Garbage of old space waits for its collection.
func (h *Tracker) diedAt(s *heap.Sample, c *heap.Collection, i int) float64 {
	t := h.Times[i]
	if k := c.Kind; i == 0 || k == trace.PauseFull || k == trace.PauseRemark || k == trace.PauseMixed ||
		k == trace.PauseMajor {
		return t
	}
	return max(h.bornAt(s), h.Times[i-1]+anyOf(s)*(t-h.Times[i-1]))
}

// Event adds one while there are few collections.
func (h *Tracker) Event(s *Series, e Event) {
	if len(h.Times) <= SparseMost+Survived {
		s.Events = append(s.Events, e)
	}
}

// clock counts the bytes that a program allocated, by time. It is made from samples, so idle phases between two
// collections show. Its resolution halves when it has clockSlots slots.
type clock struct {
	begin, width float64   // seconds
	bytes        []float64 // allocated in each slot
	sum          []float64 // up to the end of each, made by at
}

const clockSlots = 4096

// add counts bytes that were allocated at t, not before the first that were.
func (c *clock) add(t, bytes float64) {
	if c.width == 0 {
		c.begin, c.width = t, 0.05
	}
	c.sum = nil
	i := int(max(0, t-c.begin) / c.width)
	for i >= clockSlots {
		for k := range (len(c.bytes) + 1) / 2 {
			sum := c.bytes[2*k]
			if 2*k+1 < len(c.bytes) {
				sum += c.bytes[2*k+1]
			}
			c.bytes[k] = sum
		}
		c.bytes = c.bytes[:(len(c.bytes)+1)/2]
		c.width *= 2
		i = int(max(0, t-c.begin) / c.width)
	}
	for len(c.bytes) <= i {
		c.bytes = append(c.bytes, 0)
	}
	c.bytes[i] += bytes
}

// AllocatedAt gives how many bytes had been allocated at t, estimated from samples, since the window began.
func (h *Tracker) AllocatedAt(t float64) float64 {
	c := &h.clock
	if len(c.bytes) == 0 {
		return 0
	}
	if c.sum == nil {
		c.sum = make([]float64, len(c.bytes)+1)
		for i, b := range c.bytes {
			c.sum[i+1] = c.sum[i] + b
		}
	}
	x := max(0, t-c.begin) / c.width
	i := int(x)
	if i >= len(c.bytes) {
		return c.sum[len(c.bytes)]
	}
	return c.sum[i] + (x-float64(i))*c.bytes[i]
}

// YoungLive calls f with each sample that lives after the newest collection and has not yet survived as many as its
// series asks for.
func (h *Tracker) YoungLive(r *heap.Symbols, f func(*Series, *heap.Sample)) {
	all := make([]*heap.Sample, 0, h.young.Len())
	for _, x := range h.young.All() {
		all = append(all, x.s)
	}
	for s := range sites.ByID(slices.Values(all)) {
		f(h.site(r, s), s)
	}
}
