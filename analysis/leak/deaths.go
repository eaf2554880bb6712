package leak

import (
	"cmp"
	"math"
	"slices"

	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/heap"
)

// silent says whether a site has stopped to allocate, maybe after the last collection: it never did for half as long,
// and of those that continue at lateRate chance makes one in a hundred do it. clock counts seconds, or bytes allocated.
func (h *detector) silent(s *history.Series, clock func(float64) float64) bool {
	return h.To-s.Last > 2*s.Pause && h.quiet(s.Taken, s.Last, clock)
}

// ended says whether a series has ended by time and by the bytes that the program allocated.
func (h *detector) ended(s *history.Series) bool {
	return h.silent(s, h.clockTime) && h.silent(s, h.AllocatedAt)
}

// quiet says whether so many samples, the last of them at a time, are too many for none to come since.
func (h *detector) quiet(taken, last float64, clock func(float64) float64) bool {
	since, before := clock(h.To)-clock(last), clock(last)-clock(h.From)
	return before > 0 && math.Exp(-lateRate*taken*since/before) < 0.01
}

// maxHole is how many phases' births may be young at a time.
const maxHole = 15

// holeOthers is what share of the other samples must live for those of a hole to be missed.
const holeOthers = 0.3

// diedAtOnce says whether objects of a site became garbage all at once, as those of a batch that is done. What was
// young then died in the collections that followed; what was old waits for a collection of old space. So hardly any
// sample of one phase between collections, or of a few, lives, while so many of all others do that this is no chance.
// (A line that leaks in bursts and works well for long between them looks the same.) Dead samples of the first phases
// are no such hole: the consumer of a queue that grows has taken them.
func (h *detector) diedAtOnce(s *history.Series) bool {
	slices.SortStableFunc(s.Births, func(a, b history.Birth) int { return cmp.Compare(a.Gc, b.Gc) })
	var all []history.Birth
	sum := history.Birth{}
	for _, x := range s.Births {
		if x.Gc >= h.Newest { // may die yet
			break
		}
		if n := len(all); n > 0 && all[n-1].Gc == x.Gc {
			all[n-1].Taken += x.Taken
			all[n-1].Alive += x.Alive
		} else {
			all = append(all, x)
		}
	}
	for len(all) > 0 && all[0].Alive <= (1-keptYoung)*all[0].Taken {
		all = all[1:]
	}
	for _, x := range all {
		sum.Taken += x.Taken
		sum.Alive += x.Alive
	}
	for i := range all {
		var hole history.Birth
		for _, x := range all[i:min(len(all), i+maxHole)] {
			hole.Taken += x.Taken
			hole.Alive += x.Alive
			if 2*hole.Taken > sum.Taken {
				break
			}
			others := (sum.Alive - hole.Alive) / (sum.Taken - hole.Taken)
			if hole.Alive <= (1-keptYoung)*hole.Taken && others >= holeOthers &&
				stats.BinomialAtMost(hole.Taken, hole.Alive, others)*float64(len(all)) < significance {
				return true
			}
		}
	}
	return false
}

// census keeps the states by type that replaces compares: of the same collections as the floors of a site. A reference
// listing removes nothing, so the state after it counts garbage, too.
func (h *detector) census(r *heap.Cursor, floor bool) {
	if !h.late {
		return
	}
	if h.begun == nil {
		h.begun = slices.Clone(r.Totals.PerType())
	}
	if !floor {
		return
	}
	h.floor2 = append(h.floor2[:0], r.Totals.PerType()...)
	if h.floor1 == nil {
		h.floor1 = slices.Clone(h.floor2)
	}
}

// replaces says of a site of a JVM that was attached to whether its objects only take the place of others of their
// class that were there before, as in a cache that is full. No sample shows the deaths of those. But between two
// collections of old space (or up to the only one) the class has not grown by half as much as the site.
func (h *detector) replaces(r *heap.Symbols, c *candidate) bool {
	if c.p >= 1 || h.floor2 == nil {
		return false
	}
	of := map[sites.Class]bool{c.key.Class: true}
	for _, k := range c.members {
		of[k.Class] = true
	}
	x := h.curve(c.s)
	if len(x.floors) == 0 {
		return false
	}
	// The samples of a short window are few, so what the class has gained since the recording began counts as well.
	since, site := classGrowth(r, of, h.begun, h.floor2), x.v[x.floors[len(x.floors)-1]]
	if len(x.floors) == 1 {
		return since < site/2
	}
	return since < site/2 && classGrowth(r, of, h.floor1, h.floor2) < (site-x.v[x.floors[0]])/2
}

// classGrowth gives by how many bytes the classes have more objects in after than in before, both by type.
func classGrowth(r *heap.Symbols, of map[sites.Class]bool, before, after []heap.Count) (grown float64) {
	for id, n := range after {
		if !of[sites.ClassOf(r, uint32(id)).Folded()] {
			continue
		}
		grown += float64(n.Bytes)
		if id < len(before) {
			grown -= float64(before[id].Bytes)
		}
	}
	return grown
}

const (
	// swapsMost is how many other sites of a class swaps looks at, those with the most live bytes first.
	swapsMost = 32
	// swapsChance is how rarely so few samples of what is replaced die.
	swapsChance = 0.02
)

// swaps says of a site whether its objects take the place of other sites' of the same class, as in a table whose
// entries are renewed: a reference listing shows that the same object holds both, the others were enough to be
// replaced, and at least half as much of them has died as of the site lives. Few samples of the others may show less:
// each that was taken before the sampling interval became shorter stands for many objects.
func (h *detector) swaps(c *candidate) bool {
	if h.Holder == nil {
		return false
	}
	x := h.curve(c.s)
	if len(x.floors) == 0 {
		return false
	}
	keys := c.keys()
	last := x.floors[len(x.floors)-1]
	grown := x.v[last] - x.v[0]
	var others []sites.Key
	for k := range h.Sites {
		if k.Class == c.key.Class && !slices.Contains(keys, k) {
			others = append(others, k)
		}
	}
	slices.SortFunc(others, sites.Key.Compare) // always in one order
	slices.SortStableFunc(others, func(a, b sites.Key) int {
		return cmp.Compare(h.Sites[b].LiveBytes, h.Sites[a].LiveBytes)
	})
	holder := ""
	had, died, bytes, samples := 0.0, 0.0, 0.0, 0.0 // of the others
	for _, k := range others[:min(len(others), swapsMost)] {
		y := h.curve(h.Sites[k])
		if len(y.floors) == 0 {
			continue
		}
		last := y.floors[len(y.floors)-1]
		most := slices.Max(y.v[:last+1])
		if most <= 0 {
			continue
		}
		if holder == "" {
			if holder, _ = together(h.Holder(keys, 0)); holder == "" {
				return false
			}
		}
		if of, _ := together(h.Holder([]sites.Key{k}, 0)); of != holder {
			continue
		}
		had, died = had+most, died+most-y.v[last]
		bytes, samples = bytes+h.Sites[k].LiveBytes, samples+float64(h.Sites[k].LiveSamples)
	}
	each := bytes / max(samples, 1)
	if had < grown/2 || each <= 0 {
		return died > 0 && died >= grown/2
	}
	return died >= grown/2 || stats.PoissonAtMost(grown/each, died/each) >= swapsChance
}

// renewed refutes a site whose objects take the place of those that its line made for other callers, as a table that is
// read in at the start and then renewed piece by piece: between two floors the line gained less than half as much of
// their class.
func (h *detector) renewed(all []candidate) {
	gained := func(s *history.Series) (n float64, ok bool) {
		c := h.curve(s)
		if len(c.floors) < 2 {
			return 0, false
		}
		return c.v[c.floors[len(c.floors)-1]] - c.v[c.floors[0]], true
	}
	var named []*candidate // few of very many
	for i := range all {
		if c := &all[i]; c.members == nil && c.p <= significance {
			named = append(named, c)
		}
	}
	for i := range all {
		group := &all[i]
		if group.members == nil || group.wide || group.p <= significance {
			continue
		}
		for _, c := range named {
			if !slices.Contains(group.members, c.key) {
				continue
			}
			var alike []sites.Key // of the same class: an array that grows replaces another one, too
			for _, m := range group.members {
				if m.Class == c.key.Class {
					alike = append(alike, m)
				}
			}
			own, ok := gained(c.s)
			if line, ok2 := gained(h.Sum(alike)); ok && ok2 && own > 0 && line < own/2 {
				c.p, c.why = 1, whyReplaced
			}
		}
	}
}
