package leak

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
)

const (
	significance  = 0.01  // of all verdicts of a window together
	maxConfidence = 0.999 // upper bound of a confidence, since the tests rest on assumptions
	maxUnproven   = 0.95  // the same of a suspect
	// share of the maximum heap that a site must gain in the window: less than that, a minute says nothing of a day
	leastGrown = 0.0005
	most       = 20 // verdicts, and entries of the other lists
)

// judgeAll fills the verdicts, the small growth and the near misses of a report.
func (h *detector) judgeAll(r *heap.Cursor, l *Report) {
	h.Open, h.living = false, nil
	defer func() { h.living = nil }()
	h.findFull(r)
	l.Full = h.full
	var named, others []candidate
	heads := newHeads(r.Symbols)
	if h.shows() {
		h.Survivors(r)
		named, others = h.test(r, heads)
	}
	h.scale(r, named, others)
	structures := h.byHolder(h.structures(heads, named, others))
	for _, s := range structures {
		h.settle(s)
		h.owned(r.Symbols, s)
		h.bornFrom(r, s)
		if s.seeps { // seen in a part of the time, it goes on in all of it
			s.grown = max(s.grown, min(s.slope*(h.To-s.onset[0]), float64(h.mostLive())))
		}
	}
	fills := h.fills(r, heads)
	structures = slices.DeleteFunc(structures, func(s *structure) bool {
		return slices.ContainsFunc(fills, func(f *structure) bool {
			return f.head == s.head || h.leads(s, f) || slices.ContainsFunc(s.keys, func(k sites.Key) bool {
				return slices.Contains(f.keys, k)
			})
		})
	})
	sum := 0.0 // all that grows, for shares
	for _, s := range structures {
		sum += s.grown
	}
	grown, live := h.heapGrowth()
	grown = max(grown, sum)
	loaders := loadersOf(r.Symbols, append(slices.Clone(fills), structures...))
	var verdicts []told
	name := func(s *structure, v Verdict) {
		l.Verdicts = append(l.Verdicts, v)
		verdicts = append(verdicts, told{s, len(l.Verdicts), v.Holder})
	}
	for _, s := range fills {
		name(s, h.verdict(r, s, loaders, grown, live))
	}
	slices.SortStableFunc(structures, func(a, b *structure) int {
		return cmp.Or(cmp.Compare(b.weight(), a.weight()), cmp.Compare(a.head, b.head))
	})
	for _, s := range structures {
		v := h.verdict(r, s, loaders, grown, live)
		if h.small(r, &v) {
			l.Small = append(l.Small, v)
		} else {
			name(s, v)
		}
	}
	l.Verdicts = l.Verdicts[:min(len(l.Verdicts), most)]
	l.Small = l.Small[:min(len(l.Small), most)]
	l.Misses = h.misses(r, heads, others, append(fills, structures...), verdicts[:min(len(verdicts), most)])
}

// byHolder joins structures that one object holds, such as the table of a map: they are one data structure, wherever
// their parts are allocated. The fastest gives it its name. A path to the holder that leads through an array does not
// say which object it is; but entries and what hangs at them are one. One that goes along a linked list ends at any of
// its nodes: where it begins says it.
func (h *detector) byHolder(all []*structure) []*structure {
	if h.Holder == nil || len(all) < 2 {
		return all
	}
	slices.SortStableFunc(all, func(a, b *structure) int { return cmp.Compare(b.slope, a.slope) })
	type held struct {
		whole  ui.Flow
		by     string // "": it does not say which object
		object uint64
		s      *structure
	}
	var known []held
	return slices.DeleteFunc(all, func(s *structure) bool {
		whole := h.holderOf(s)
		holder, ok := together(whole)
		array, object := !ok || strings.Contains(holder, "[]"), uint64(0)
		if whole != "" {
			object = h.objectOf(s)
		}
		i := slices.IndexFunc(known, func(x held) bool {
			return !array && (within(x.by, holder) || within(holder, x.by)) || s.leads(whole, x.whole) ||
				x.s.leads(x.whole, whole) || object != 0 && x.object == object
		})
		if i < 0 {
			x := held{whole: whole, by: holder, object: object, s: s}
			if array {
				x.by = ""
			}
			known = append(known, x)
			return false
		}
		first := known[i].s
		first.join(&s.growth)
		first.late, first.large = first.late+s.late, first.large+s.large
		first.members, first.keys = append(first.members, s.members...), append(first.keys, s.keys...)
		return true
	})
}

// settle looks at all sites of a suspect as one: each may have too few samples to show that they live and that more
// of them came between two floors.
func (h *detector) settle(s *structure) {
	if s.settled || len(s.keys) < 2 {
		return
	}
	h.largestFirst(s.keys)
	if g := h.judge(h.Sum(s.keys)); g.p <= significance && g.settled {
		s.settled, s.once, s.queued, s.seeps, s.floors = true, false, g.queued, g.seeps, g.floors
	}
}

// together gives the part of a holder's text that is the same for all that is in one data structure.
func together(holder ui.Flow) (of string, ok bool) {
	of, _, ok = strings.Cut(string(holder), ", then ")
	if of, _, list := strings.Cut(of, " ×"); list {
		return of, true
	}
	return of, ok
}

// leads says whether the way to another structure leads through the objects of s, as from the entries of maps to their
// values: own and other are the ways to both.
func (s *structure) leads(own, other ui.Flow) bool {
	from, to := wayOf(own), wayOf(other)
	return own != "" && slices.ContainsFunc(s.keys, func(k sites.Key) bool {
		return strings.HasPrefix(to, from+" → "+lastName(k.Class.Name)+".")
	})
}

// alikeWays is what differs between ways to objects of one data structure: how many such ways there are, and from which
// end a list is walked, and how far.
var alikeWays = []struct{ of, to string }{{", then ", " → "}, {"LinkedList.last", "LinkedList.first"},
	{"Node.prev", "Node.next"}}

// wayOf gives the way to objects, written so that it is the same for all objects of one structure.
func wayOf(holder ui.Flow) string {
	way := string(holder)
	if n, each, ok := strings.Cut(way, " objects, each reached by "); ok && !strings.Contains(n, " ") {
		way = each
	}
	for _, x := range alikeWays {
		way = strings.ReplaceAll(way, x.of, x.to)
	}
	steps := strings.Split(way, " → ")
	for i, s := range steps {
		steps[i], _, _ = strings.Cut(s, " ×")
	}
	return strings.Join(steps, " → ")
}

// leads says whether the way to what fills the heap leads through the objects of s.
func (h *detector) leads(s, fills *structure) bool {
	return h.Holder != nil && s.leads(h.holderOf(s), h.holderOf(fills))
}

// within says whether a holder is the other one, or a part of it, as a branch of a tree.
func within(part, of string) bool {
	return part == of || strings.Contains(of, " → ") && strings.HasPrefix(part, of+" → ")
}

// holderOf names what holds a structure: of what grows, what came after the first quarter of its growth. Its sites may
// have other objects, as what a program reads in when it starts.
func (h *detector) holderOf(s *structure) ui.Flow {
	return h.Holder(s.keys, h.quarter(s))
}

// objectOf identifies the object that holderOf names; 0: not known.
func (h *detector) objectOf(s *structure) uint64 {
	if h.Object == nil {
		return 0
	}
	return h.Object(s.keys, h.quarter(s))
}

// quarter is the collection after the first quarter of a structure's growth.
func (h *detector) quarter(s *structure) uint64 {
	if s.fills {
		return 0
	}
	from, end := (s.onset[0]+s.onset[1])/2, h.Times[len(h.Times)-1]
	i, _ := slices.BinarySearch(h.Times, from+(end-from)/4)
	return h.spaces[min(i, len(h.spaces)-1)].gc
}

// test judges all candidates. Of those that are not named, the second list has what grew.
func (h *detector) test(r *heap.Cursor, x *heads) (named, others []candidate) {
	h.liveOf = nil
	all := h.candidates(r.Symbols)
	refuted, ended := map[sites.Key]bool{}, map[sites.Key]bool{}
	for i := range all {
		c := &all[i]
		if c.wide && slices.ContainsFunc(c.members, func(k sites.Key) bool { return refuted[k] }) {
			c.p, c.why = 1, whyDropped
			continue
		}
		h.exact = h.exactlyOf(r.Symbols, c)
		if c.growth = h.judge(c.s); h.late && h.replaces(r.Symbols, c) {
			c.p, c.why = 1, whyReplaced
		}
		h.byClass(r.Symbols, c)
		h.bornSteadily(r, c)
		if c.p <= significance && c.slope > 0 && h.swaps(c) {
			c.p, c.why = 1, whyReplaced
		}
		if h.Soft != nil && (c.p <= significance || c.why == whyFills) && h.Soft(c.keys()) {
			c.p, c.why, c.refuted = 1, whySoft, true
		}
		if c.refuted {
			refuted[c.key] = true
		}
		if c.members != nil && !c.wide && h.ended(c.s) {
			for _, k := range c.members {
				ended[k] = true
			}
		}
		if c.open && c.p <= significance && c.slope > 0 {
			h.Open = true
		}
	}
	for i := range all { // each alone may have too few samples to show it
		if c := &all[i]; c.p <= significance && c.members == nil && ended[c.key] {
			c.p, c.why = 1, whyStopped
		}
	}
	h.exact = exactly{}
	h.renewed(all)
	all = h.classes(x, all)
	h.beside(x, all)
	h.inside(all)
	// Some of a thousand sites rise by chance: Holm's correction, for all whose objects are not known to be dropped.
	// Those whose shape is none of growth count: the shape is of the same data.
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.p, b.p) })
	least, tested := 0.0, 0
	counted := false // one that a replay may refute, and then not count
	for i := range all {
		if w := all[i].why; w == whyNot || w == whyStopped || w == whyChance {
			tested++
			counted = counted || all[i].open
		}
	}
	h.Open = h.Open || counted && len(all) > 0 && all[0].p <= significance
	for i := range all {
		if all[i].p < 1 {
			least = max(least, min(1, all[i].p*float64(tested-i)))
			all[i].p = least
		}
	}
	for _, c := range all {
		switch {
		case c.p <= significance && c.slope > 0:
			named = append(named, c)
		case !c.wide && c.grown > 0:
			if c.p < 1 || c.why == whyNot {
				c.why = whyChance
			}
			others = append(others, c)
		}
	}
	return single(named), others
}

// small says whether what a verdict says does not matter: it grows by less than is asked for, too little to say
// anything, or it would take more than a year to fill the heap.
func (h *detector) small(r *heap.Cursor, v *Verdict) bool {
	limit := float64(r.JVM.MaxHeap)
	return v.BytesPerSecond*86400 < h.MinGrowth*limit || float64(v.GrownBytes) < leastGrown*limit ||
		v.FullIn != nil && *v.FullIn >= longest
}

// loadersOf gives what tells the classes of structures apart.
func loadersOf(r *heap.Symbols, all []*structure) map[sites.Class]string {
	classes := map[sites.Class]bool{}
	for _, s := range all {
		for _, m := range s.members {
			classes[m.class] = true
		}
	}
	return sites.Loaders(r, slices.SortedFunc(maps.Keys(classes), func(a, b sites.Class) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Loader, b.Loader))
	}))
}
