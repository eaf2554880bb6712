package analysis

import (
	"cmp"
	"slices"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// A small program in a large heap may have three collections in a minute. What lives after each of them would be a series of three points, but
// samples carry the time of their allocation: where collections are few, a series rises at the times at which its objects were allocated, and
// falls somewhere between the collection that last saw an object and the one that did not.
const (
	sparseMost = 24 // so many decided collections make a series of their own
	finePoints = 36 // of a series where there are fewer
	lasting    = 5  // seconds after its allocation that an object must be seen alive, to count though only one collection has seen it
	quietLeast = 4 * lasting
)

// event is a change of a series at a time: a sample that lasts, or the death of one that did.
type event struct {
	t, bytes float64
	n        float64
	born     float64 // when what died was allocated
}

// begin is when what the recording knows of allocations begins: where the program's phase before the first collection did.
func (h *histories) begin(c *heap.Collection) {
	if h.times == nil {
		h.from = float64(min(c.PhaseStart, c.Start)) / 1e9
	}
}

// bornAt is when a sample was allocated, as far as the window knows it.
func (h *histories) bornAt(s *heap.Sample) float64 { return max(float64(s.Time)/1e9, h.from) }

// diedAt is a time for the death of a sample that collection c, the i-th, did not find: any since the one before, always the same for it. Garbage
// of old space waits for its collection, and goes with it.
func (h *histories) diedAt(s *heap.Sample, c *heap.Collection, i int) float64 {
	t := h.times[i]
	if k := c.Kind; i == 0 || k == trace.PauseFull || k == trace.PauseRemark || k == trace.PauseMixed {
		return t
	}
	u := float64(s.ID*0x9e3779b97f4a7c15>>11) / (1 << 53)
	return max(h.bornAt(s), h.times[i-1]+u*(t-h.times[i-1]))
}

// event adds one while there are few collections.
func (h *histories) event(s *series, e event) {
	if len(h.times) <= sparseMost+survived {
		s.events = append(s.events, e)
	}
}

// sparse gives the end of what is decided by the first n collections where they are few: later than by the number of collections survived if the
// newest has shown what lasts. It is false where collections are many, or so few in so short a time that they show nothing.
func (h *histories) sparse(n int) (end float64, ok bool) {
	if n == 0 || n >= sparseMost {
		return 0, false
	}
	end = h.times[n-1]
	if n == h.decided() {
		end = max(end, h.times[h.movedN[len(h.movedN)-1]]-lasting)
	}
	return end, (n >= leastPoints || end-h.from >= quietLeast) && end-h.from >= (h.to-h.from)/2
}

// fine makes the course of a series up to end from its events.
func (h *histories) fine(s *series, end float64) course {
	c := course{taken: s.taken * (end - h.from) / max(h.to-h.from, end-h.from)}
	for i := range finePoints {
		c.t = append(c.t, h.from+(end-h.from)*float64(i)/(finePoints-1))
	}
	known := 0
	for known < len(h.times) && h.times[known] <= end {
		known++
	}
	c.t = append(c.t, h.times[:known]...)
	slices.Sort(c.t)
	c.t = slices.Compact(c.t)
	c.v, c.samples = make([]float64, len(c.t)), make([]float64, len(c.t))
	for _, e := range s.events {
		if e.n < 0 && e.born <= end {
			e.t = min(e.t, end) // who is dead later does not stay
		}
		i, _ := slices.BinarySearch(c.t, e.t)
		if i == len(c.t) {
			continue
		}
		c.v[i] += e.bytes
		c.samples[i] += e.n
		c.count(e.t, e.n)
	}
	for i := 1; i < len(c.t); i++ {
		c.v[i] = max(0, c.v[i]+c.v[i-1])
		c.samples[i] += c.samples[i-1]
	}
	for _, f := range h.floors {
		if i, ok := slices.BinarySearch(c.t, h.times[f]); ok {
			c.floors = append(c.floors, i)
		}
	}
	return c
}

// course is a series over times: its bytes and samples, the points at which old space was collected, and how many of its samples came and went.
type course struct {
	t, v, samples []float64
	floors        []int
	came, went    float64
	taken         float64 // samples, whether they lasted or not
	// The same in the second half: a queue whose consumer is too slow lets go while it is short.
	lateCame, lateWent float64
}

// count adds samples that came at time t, or went.
func (c *course) count(t, n float64) {
	c.came += max(0, n)
	c.went += max(0, -n)
	if t >= (c.t[0]+c.t[len(c.t)-1])/2 {
		c.lateCame += max(0, n)
		c.lateWent += max(0, -n)
	}
}

// shows says whether the window has enough collections to show growth.
func (h *histories) shows() bool {
	n := h.calm(h.decided())
	if n < sparseMost {
		_, ok := h.sparse(n)
		return ok
	}
	return h.times[n-1] > h.times[0]
}

// course gives that of a series, over collections, or finer where there are few of them.
func (h *histories) course(s *series) course {
	n := h.calm(h.decided())
	if end, ok := h.sparse(n); ok {
		return h.fine(s, end)
	}
	c := course{t: h.times[:n], v: make([]float64, n), samples: make([]float64, n), taken: s.taken}
	s.spread(c.v, c.samples)
	for k, i := range s.at {
		c.count(h.times[i], float64(s.samples[k]))
		if int(i) >= n && s.samples[k] < 0 && n == h.decided() { // who is dead later does not stay
			c.v[n-1] = max(0, c.v[n-1]+s.bytes[k])
			c.samples[n-1] += float64(s.samples[k])
		}
	}
	for _, f := range h.floors {
		if int(f) < n {
			c.floors = append(c.floors, int(f))
		}
	}
	return c
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
