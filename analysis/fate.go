package analysis

import (
	"cmp"
	"math"
	"slices"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// birth counts the samples of a site that were taken in the phase before a collection, and those of them that live at the end of the window, as far
// as is known.
type birth struct {
	gc           uint64
	taken, alive float64
}

// mostPhases is how many phases' births are kept, from a window's start on: batches that are let go are found where old space is not collected, which
// does not go on for long.
const mostPhases = 4096

// took counts a sample of the phase before collection gc, taken at t, in the births only if keep says so.
func (s *series) took(gc uint64, t float64, keep bool) {
	if s.taken > 0 {
		s.pause = max(s.pause, t-s.last)
	}
	s.last = max(s.last, t)
	s.taken++
	if !keep {
		return
	}
	if n := len(s.births); n > 0 && s.births[n-1].gc == gc {
		s.births[n-1].taken++
		return
	}
	s.births = append(s.births, birth{gc: gc, taken: 1})
}

// fates counts which samples live at the end of the window.
func (h *histories) fates(r *heap.Cursor) {
	for _, s := range h.sites {
		for i := range s.births {
			s.births[i].alive = 0
		}
	}
	for _, s := range r.Live {
		x := h.sites[h.key(r.Symbols, s)]
		if x == nil {
			continue
		}
		if i, ok := slices.BinarySearchFunc(x.births, s.Birth, func(b birth, gc uint64) int { return cmp.Compare(b.gc, gc) }); ok {
			x.births[i].alive++
		}
	}
}

// silent says whether a site has stopped to allocate, maybe after the last collection: it never did for half as long, and of those that
// go on at lateRate chance makes one in a hundred do it.
func (h *histories) silent(s *series) bool {
	quiet, before := h.to-s.last, s.last-h.from
	return quiet > 2*s.pause && before > 0 && math.Exp(-lateRate*s.taken*quiet/before) < 0.01
}

// maxHole is how many phases' births may be young at a time.
const maxHole = 15

// letLeast is what share of the other samples must live for those of a hole to be missed.
const letLeast = 0.3

// let says whether objects of a site were let go all at once, as those of a batch that is done: what was still young then died in front of our
// eyes, what was old waits for its collection. So of the samples of one phase between collections, or a few, hardly any lives, while so
// many of all others do that this is no chance. (A line that leaks in bursts and works well for long between them looks the same.) That the first
// ones of all are dead is no such hole: the consumer of a queue that grows has taken them.
func (h *histories) let(s *series) bool {
	slices.SortStableFunc(s.births, func(a, b birth) int { return cmp.Compare(a.gc, b.gc) })
	var all []birth
	sum := birth{}
	for _, x := range s.births {
		if x.gc >= h.newest { // may die yet
			break
		}
		if n := len(all); n > 0 && all[n-1].gc == x.gc {
			all[n-1].taken += x.taken
			all[n-1].alive += x.alive
		} else {
			all = append(all, x)
		}
	}
	for len(all) > 0 && all[0].alive <= (1-keptYoung)*all[0].taken {
		all = all[1:]
	}
	for _, x := range all {
		sum.taken += x.taken
		sum.alive += x.alive
	}
	for i := range all {
		var hole birth
		for _, x := range all[i:min(len(all), i+maxHole)] {
			hole.taken += x.taken
			hole.alive += x.alive
			if 2*hole.taken > sum.taken {
				break
			}
			others := (sum.alive - hole.alive) / (sum.taken - hole.taken)
			if hole.alive <= (1-keptYoung)*hole.taken && others >= letLeast && atMostOf(hole.taken, hole.alive, others)*float64(len(all)) < significance {
				return true
			}
		}
	}
	return false
}

// atMostOf is the probability that k or fewer of n happen, each of which does so with probability p < 1.
func atMostOf(n, k, p float64) float64 {
	if p >= 1 {
		p = 1 - 1/(n+2)
	}
	sum := 0.0
	for i := 0.0; i <= k; i++ {
		a, _ := math.Lgamma(n + 1)
		b, _ := math.Lgamma(i + 1)
		c, _ := math.Lgamma(n - i + 1)
		sum += math.Exp(a - b - c + i*math.Log(p) + (n-i)*math.Log1p(-p))
	}
	return min(1, sum)
}

// census keeps the states by type that replaces compares.
func (h *histories) census(r *heap.Cursor, c *heap.Collection) {
	if !h.late {
		return
	}
	if h.begun == nil {
		h.begun = slices.Clone(r.Totals.PerType())
	}
	if c.Kind != trace.PauseFull && c.Kind != trace.PauseRemark {
		return
	}
	h.floor2 = append(h.floor2[:0], r.Totals.PerType()...)
	if h.floor1 == nil {
		h.floor1 = slices.Clone(h.floor2)
	}
}

// replaces says of a site of a JVM that was attached to whether its objects only take the place of others of their class that were there before,
// as in a cache that is full: the deaths of those no sample tells, but between two collections of old space (or up to the only one) the class has not
// grown by half as much as the site.
func (h *histories) replaces(r *heap.Symbols, c *candidate) bool {
	if c.p >= 1 || h.floor2 == nil {
		return false
	}
	of := map[Class]bool{c.key.class: true}
	for _, k := range c.members {
		of[k.class] = true
	}
	x := h.course(c.s)
	if len(x.floors) == 0 {
		return false
	}
	before, site := h.begun, x.v[x.floors[len(x.floors)-1]]
	if len(x.floors) > 1 {
		before = h.floor1
		site -= x.v[x.floors[0]]
	}
	grown := 0.0
	for id, n := range h.floor2 {
		if !of[ClassOf(r, uint32(id)).folded()] {
			continue
		}
		grown += float64(n.Bytes)
		if id < len(before) {
			grown -= float64(before[id].Bytes)
		}
	}
	return grown < site/2
}
