package leak

import (
	"cmp"
	"slices"

	"github.com/heapcam/heapcam/analysis/history"
)

// A small program in a large heap may have three collections in a minute. What lives after each of them would be a
// series of three points, but samples carry the time of their allocation: where collections are few, a series rises at
// the times at which its objects were allocated, and falls somewhere between the collection that last saw an object and
// the one that did not.
const (
	finePoints = 36 // of a series where there are few collections
	quietLeast = 4 * history.Lasting
	// unequal is how many times as long as the shortest sampling interval of a window the longest is, if that matters.
	unequal = 1.4
	// coarsest is the share of a site's bytes whose samples are taken for those of the longest interval.
	coarsest = 0.1
)

// sparse gives the end of what is decided by the first n collections where they are few: later than by the number of
// collections survived if the newest has shown what lasts. It is false where collections are many, or so few in so
// short a time that they show nothing.
func (h *detector) sparse(n int) (end float64, ok bool) {
	if n == 0 || n >= history.SparseMost {
		return 0, false
	}
	end = h.Times[n-1]
	if n == h.Decided() {
		end = max(end, h.Times[h.MovedN[len(h.MovedN)-1]]-history.Lasting)
	}
	enough := n >= fewestPoints || end-h.From >= quietLeast || h.listings > 0 && end-h.From >= 2*history.Lasting
	return end, enough && end-h.From >= (h.To-h.From)/2
}

// fine makes the curve of a series up to end from its events.
func (h *detector) fine(s *history.Series, end float64) curve {
	c := curve{taken: s.Taken * (end - h.From) / max(h.To-h.From, end-h.From)}
	for i := range finePoints {
		c.t = append(c.t, h.From+(end-h.From)*float64(i)/(finePoints-1))
	}
	known := 0
	for known < len(h.Times) && h.Times[known] <= end {
		known++
	}
	c.t = append(c.t, h.Times[:known]...)
	slices.Sort(c.t)
	c.t = slices.Compact(c.t)
	c.v, c.samples = make([]float64, len(c.t)), make([]float64, len(c.t))
	for _, e := range s.Events {
		if e.N < 0 && e.Born <= end {
			e.T = min(e.T, end) // who is dead later does not stay
		}
		i, _ := slices.BinarySearch(c.t, e.T)
		if i == len(c.t) {
			continue
		}
		c.v[i] += e.Bytes
		c.samples[i] += e.N
		c.count(e.T, e.N)
	}
	for i := 1; i < len(c.t); i++ {
		c.v[i] = max(0, c.v[i]+c.v[i-1])
		c.samples[i] += c.samples[i-1]
	}
	for _, f := range h.Floors {
		if i, ok := slices.BinarySearch(c.t, h.Times[f]); ok {
			c.floors = append(c.floors, i)
		}
	}
	c.settle(h, end)
	c.level(h)
	return c
}

// settle takes in that the last point is what is left after the newest floor, if that is later.
func (c *curve) settle(h *detector, end float64) {
	n, last := len(c.floors), len(c.t)-1
	if k := len(h.Floors); k > 0 && h.Times[h.Floors[k-1]] > end && (n == 0 || c.floors[n-1] != last) {
		c.floors = append(c.floors, last)
	}
}

// curve is a series over times: its bytes and samples, the points at which old space was collected, and how many of
// its samples were born and died.
type curve struct {
	t, v, samples []float64
	floors        []int
	born, died    float64
	taken         float64 // samples, whether they lasted or not
	// The same in the second half: a queue whose consumer is too slow drops objects while it is short.
	lateBorn, lateDied float64
}

// count adds samples that came at time t, or went.
func (c *curve) count(t, n float64) {
	c.born += max(0, n)
	c.died += max(0, -n)
	if t >= (c.t[0]+c.t[len(c.t)-1])/2 {
		c.lateBorn += max(0, n)
		c.lateDied += max(0, -n)
	}
}

// level replaces numbers of samples by shares of the bytes, if the sampling interval changed: a sample of another
// interval stands for a different number of objects. One of the longest interval counts as one, so that nothing seems
// surer than it is.
func (c *curve) level(h *detector) {
	if h.least == 0 || float64(h.interval) < unequal*float64(h.least) {
		return
	}
	type rise struct{ bytes, each float64 }
	var rises []rise
	v, n, bytes, samples := 0.0, 0.0, 0.0, 0.0
	for i := range c.v {
		if dv, dn := c.v[i]-v, c.samples[i]-n; dv > 0 && dn > 0 {
			rises = append(rises, rise{dv, dv / dn})
			bytes, samples = bytes+dv, samples+dn
		}
		v, n = c.v[i], c.samples[i]
	}
	if len(rises) == 0 {
		return
	}
	slices.SortFunc(rises, func(a, b rise) int { return cmp.Compare(b.each, a.each) })
	each, above := 0.0, 0.0
	for _, x := range rises { // not that of a single large array
		each = x.each
		if above += x.bytes; above >= coarsest*bytes {
			break
		}
	}
	for i := range c.samples {
		c.samples[i] = c.v[i] / each
	}
	share := bytes / each / samples
	c.born, c.died, c.taken = c.born*share, c.died*share, c.taken*share
	c.lateBorn, c.lateDied = c.lateBorn*share, c.lateDied*share
}

// shows says whether the window has enough collections to show growth.
func (h *detector) shows() bool {
	n := h.calm(h.Decided())
	if n < history.SparseMost {
		_, ok := h.sparse(n)
		return ok
	}
	return h.Times[n-1] > h.Times[0]
}

// curve returns the curve of a series, over collections, or finer where there are few of them.
func (h *detector) curve(s *history.Series) curve {
	n := h.calm(h.Decided())
	if end, ok := h.sparse(n); ok {
		return h.fine(s, end)
	}
	c := curve{t: h.Times[:n], v: make([]float64, n), samples: make([]float64, n), taken: s.Taken}
	s.Spread(c.v, c.samples)
	for k, i := range s.At {
		c.count(h.Times[i], float64(s.Samples[k]))
		if int(i) >= n && s.Samples[k] < 0 && n == h.Decided() { // who is dead later does not stay
			c.v[n-1] = max(0, c.v[n-1]+s.Bytes[k])
			c.samples[n-1] += float64(s.Samples[k])
		}
	}
	for _, f := range h.Floors {
		if int(f) < n {
			c.floors = append(c.floors, int(f))
		}
	}
	if n == h.Decided() {
		c.settle(h, c.t[n-1])
	}
	c.level(h)
	return c
}
