package leak

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// Heap states count objects by type exactly, where of a site there are samples only. Of a leak that shares its site
// with much that dies they are too few. So where a site has most of what its class gained, the class shows whether it
// grows steadily. Counts after a full collection are of what lives. After a remark of G1 they hold garbage of old space
// until its region is collected, so the ages of samples have to agree.

const (
	mostLevels  = 48  // collections of old space whose counts are kept
	fewLevels   = 4   // fewer show no line
	ownsOfClass = 0.5 // share of what a class gained that a site has at least, early and late
)

// levels are exact counts by type after collections of old space.
type levels struct {
	at    []float64 // seconds
	types [][]heap.Count
	by    map[sites.Class][]uint32 // types of a class; made when it is asked for
}

// add takes in what a collection of old space has left. Of very many, the one nearest to its neighbours is given up.
func (l *levels) add(c *heap.Collection, at float64, types []heap.Count) {
	if c.Kind == trace.PauseFull || c.Kind == trace.PauseRemark {
		l.put(at, types)
	}
}

// put takes in counts by type.
func (l *levels) put(at float64, types []heap.Count) {
	if len(types) == 0 {
		return
	}
	if n := len(l.at); n == mostLevels {
		k := 1
		for i := 2; i < n-1; i++ {
			if l.at[i+1]-l.at[i-1] < l.at[k+1]-l.at[k-1] {
				k = i
			}
		}
		l.at, l.types = slices.Delete(l.at, k, k+1), slices.Delete(l.types, k, k+1)
	}
	l.at, l.types, l.by = append(l.at, at), append(l.types, slices.Clone(types)), nil
}

// of gives objects and bytes of a class after each.
func (l *levels) of(r *heap.Symbols, class sites.Class) (n []uint64, v []float64) {
	if l.by == nil {
		l.by = map[sites.Class][]uint32{}
		for id := range l.types[len(l.types)-1] {
			k := sites.ClassOf(r, uint32(id)).Folded()
			l.by[k] = append(l.by[k], uint32(id))
		}
	}
	n, v = make([]uint64, len(l.at)), make([]float64, len(l.at))
	for i, types := range l.types {
		for _, id := range l.by[class] {
			if int(id) < len(types) {
				n[i] += types[id].Objects
				v[i] += float64(types[id].Bytes)
			}
		}
	}
	return n, v
}

// typesOf gives the types of a class, after of.
func (l *levels) typesOf(class sites.Class) map[uint64]bool {
	out := map[uint64]bool{}
	for _, id := range l.by[class] {
		out[uint64(id)] = true
	}
	return out
}

// middle is the point nearest to the middle of all; -1 if none divides them.
func middle(at []float64) int {
	n, mid := len(at), -1
	far := func(i int) float64 { return math.Abs(at[i] - (at[0]+at[n-1])/2) }
	for i := 1; i < n-1; i++ {
		if mid < 0 || far(i) < far(mid) {
			mid = i
		}
	}
	if mid < 0 || far(mid) > (at[n-1]-at[0])/4 {
		return -1
	}
	return mid
}

// classGrows says whether collections of old space left ever more of a class, as fast late as early by time or by the
// bytes allocated: p is the probability that chance does it.
func (h *detector) classGrows(at, v []float64) (p float64, ok bool) {
	n, mid := len(at), middle(at)
	if n < fewLevels || mid < 0 || v[mid] <= v[0] || v[n-1] <= v[mid] {
		return 1, false
	}
	end := h.Times[len(h.Times)-1]
	if at[n-1]-h.From < (end-h.From)/2 || at[n-1]-at[0] < (at[n-1]-h.From)/2 {
		return 1, false
	}
	p = 1
	for _, clock := range []func(float64) float64{h.clockTime, h.AllocatedAt} {
		t := make([]float64, n)
		for i, x := range at {
			t[i] = clock(x)
		}
		if t[mid] <= t[0] || t[n-1] <= t[mid] ||
			(v[n-1]-v[mid])/(t[n-1]-t[mid]) < steady*(v[mid]-v[0])/(t[mid]-t[0]) {
			continue
		}
		q := stats.Line(t, v)
		if n >= minPoints {
			q = max(q, stats.Drift(t, v))
		}
		p = min(p, 2*q)
	}
	return p, p <= significance
}

// byClass judges a site that too few samples spoke for by what its class gained.
func (h *detector) byClass(r *heap.Symbols, c *candidate) {
	l := &h.levels
	if c.p <= significance || c.members != nil || len(l.at) < fewLevels || !tooFew(c.why) {
		return
	}
	objects, v := l.of(r, c.key.Class)
	p, ok := h.classGrows(l.at, v)
	if !ok {
		return
	}
	x, n, mid := h.curve(c.s), len(v), middle(l.at)
	has := func(i int) float64 { return interpolate(x.t, x.v, l.at[i]) }
	if has(mid)-has(0) < ownsOfClass*(v[mid]-v[0]) || has(n-1)-has(mid) < ownsOfClass*(v[n-1]-v[mid]) {
		return
	}
	c.byCounts(p, objects, mid)
	c.settled = c.seen >= settledShare
	if rate := (v[n-1] - v[0]) / (l.at[n-1] - l.at[0]); c.slope <= 0 || c.slope > rate {
		c.slope, c.low, c.high = rate, rate/2, rate
	}
}

// tooFew says whether the samples of a site may have been too few to show that it grows.
func tooFew(w why) bool { return w == whyNot || w == whyChance || w == whyStopped || w == whyFills }

// byCounts notes that a candidate grows by exact counts.
func (c *candidate) byCounts(p float64, objects []uint64, mid int) {
	n := len(objects)
	c.p, c.why, c.test, c.floors, c.once = p, whyNot, "exact counts of the class", n, false
	c.counts = [3]uint64{objects[0], objects[mid], objects[n-1]}
}

// classes judges the application's own classes, most of which have too few samples to be candidates: a session is
// small, and what it holds comes from helpers that others call. Of each class that collections of old space left ever
// more of, the largest site is a candidate.
func (h *detector) classes(x *heads, all []candidate) []candidate {
	if max(len(h.levels.at), len(h.alive.at)) < fewLevels-1 {
		return all
	}
	of, at := map[sites.Class]sites.Key{}, map[string][]sites.Key{}
	for k, s := range h.Sites {
		head := x.of(k.Frame)
		at[head] = append(at[head], k)
		if sites.Library(k.Class.Name) || k.Class.Name == "" || strings.HasSuffix(k.Class.Name, "[]") {
			continue
		}
		if o, ok := of[k.Class]; !ok || cmp.Or(cmp.Compare(s.LiveBytes, h.Sites[o].LiveBytes), k.Compare(o)) > 0 {
			of[k.Class] = k
		}
	}
	grows := map[string]bool{}
	for i := range all {
		if all[i].p <= significance && all[i].slope > 0 {
			grows[x.of(all[i].key.Frame)] = true
		}
	}
	for _, k := range slices.SortedFunc(maps.Values(of), sites.Key.Compare) {
		head := x.of(k.Frame)
		if grows[head] {
			continue
		}
		c := candidate{key: k, s: h.Sites[k]}
		if !h.class(x.r, &h.levels, &c, at[head]) && !h.class(x.r, &h.alive, &c, at[head]) {
			continue
		}
		if i := slices.IndexFunc(all, func(o candidate) bool { return o.members == nil && o.key == k }); i < 0 {
			all = append(all, c)
		} else if tooFew(all[i].why) || c.queued && (all[i].why == whyTurnover || all[i].why == whyFreed) {
			all[i].growth = c.growth
		}
	}
	return all
}

// counted says what a class is named for.
func (v *Verdict) counted() ui.Flow {
	text := ui.Flowf("About the middle of the window %s objects of %s were left, and %s at the last count.",
		ui.Flow(ui.Count(v.ClassObjects[1])), ui.Flow(v.counts), ui.Flow(ui.Count(v.ClassObjects[2])))
	if len(v.Members) == 1 {
		text += " What they hold is not in this rate."
	}
	if v.queued {
		text += " The older ones are dead: more come than leave, as in a queue that empties too slowly."
	}
	if v.Kind != KindSuspect {
		return text
	}
	return text + " Too few samples show how old they are: they may be a cache that fills up, or a load that rises."
}

// heapRate is how fast all that collections of old space left grows, in bytes a second; 0 if that is not known.
func (h *detector) heapRate() float64 {
	sum := func(types []heap.Count) (n float64) {
		for _, x := range types {
			n += float64(x.Bytes)
		}
		return n
	}
	l, n := &h.levels, len(h.levels.at)-1
	if n < 1 || l.at[n] <= l.at[0] {
		return 0
	}
	return max(0, sum(l.types[n])-sum(l.types[0])) / (l.at[n] - l.at[0])
}

// class judges a class by its counts, and by the ages of the objects from the sites near the one where its objects are
// allocated, which show whether they stay.
func (h *detector) class(r *heap.Symbols, l *levels, c *candidate, near []sites.Key) bool {
	if len(l.at) < fewLevels-1 {
		return false
	}
	objects, v := l.of(r, c.key.Class)
	at := l.at
	p, ok := h.classGrows(at, v)
	if !ok && !h.late { // the first count is that of the start
		at, v = slices.Insert(slices.Clone(at), 0, h.From), slices.Insert(v, 0, 0)
		objects = slices.Insert(objects, 0, 0)
		p, ok = h.classGrows(at, v)
		p *= 2
	}
	n, mid := len(at), middle(at)
	if !ok || objects[n-1]-objects[0] < leastObjects {
		return false
	}
	if h.Soft != nil && h.Soft([]sites.Key{c.key}) ||
		h.like(softReferences, float64(objects[n-1]-objects[0]), at[n-1]-at[0], math.Inf(1)) {
		return false
	}
	s := h.Sum(near)
	old := h.ages(s, at[n-1])
	turned, known := old.turnover()
	if (turned || !known) && h.keepsAge(s) {
		return false
	}
	if l == &h.alive { // all that lives, so all ages are known
		var keeps bool
		if keeps, turned, known = h.classAges(l.typesOf(c.key.Class), s); keeps || !known {
			return false
		}
	}
	c.byCounts(p, objects, mid)
	c.settled, c.queued, c.alone = known, turned, c.key.Class.Name
	c.grown, c.samples, c.survives = v[n-1]-v[0], float64(c.s.LiveSamples), c.s.Weight()
	rate := (v[n-1] - v[0]) / (at[n-1] - at[0])
	c.slope, c.low, c.high, c.onset = rate, rate*steady, rate/steady, onset(at, envelope(v))
	c.seen, c.seenAt = 1, at[n-1]
	return true
}

// leastObjects is how many objects of a class matter at least.
const leastObjects = 100
