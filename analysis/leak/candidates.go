package leak

import (
	"cmp"
	"slices"

	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
)

// candidate is a site, or several that share their innermost frames, under test.
type candidate struct {
	key     sites.Key
	members []sites.Key // of several
	wide    bool        // they share the program's own method, not the line
	s       *history.Series
	growth
}

// keys are the sites of a candidate.
func (c *candidate) keys() []sites.Key {
	if c.members == nil {
		return []sites.Key{c.key}
	}
	return c.members
}

// candidates are the sites that have had some samples, those that share the program's own innermost line (a leak in a
// helper that is called from everywhere is one leak), and those that share its method: of a slow leak each of its
// objects alone may have too few samples.
func (h *detector) candidates(r *heap.Symbols) []candidate {
	var all []candidate
	heads := map[line][]sites.Key{}
	for k, s := range h.Sites {
		if s.Lasts() >= minSamples {
			all = append(all, candidate{key: k, s: s})
		}
		hk := own(r, k.Frame)
		if hk.number > 0 { // a line may call twice what allocates
			hk.bci = 0
		}
		heads[hk] = append(heads[hk], k)
	}
	methods, lines := map[line][]sites.Key{}, map[line]int{}
	group := func(ks []sites.Key, wide bool) {
		if len(ks) < 2 ||
			wide && slices.ContainsFunc(ks, func(k sites.Key) bool { return h.Sites[k].Lasts() > ownSamples }) {
			return
		}
		h.largestFirst(ks)
		if s := h.Sum(ks); s.Lasts() >= minSamples {
			all = append(all, candidate{key: ks[0], members: ks, wide: wide, s: s})
		}
	}
	for l, ks := range heads {
		ks = h.ongoing(r, ks)
		group(ks, false)
		if l.method != "" {
			l.bci, l.number = 0, 0
			methods[l] = append(methods[l], ks...)
			lines[l]++
		}
	}
	for m, ks := range methods {
		if lines[m] > 1 {
			group(ks, true)
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { // methods last
		if a.wide != b.wide {
			return map[bool]int{true: 1, false: -1}[a.wide]
		}
		return cmp.Or(cmp.Compare(a.key.Frame, b.key.Frame), cmp.Compare(a.key.Class.Name, b.key.Class.Name),
			cmp.Compare(a.key.Class.Loader, b.key.Class.Loader), cmp.Compare(len(a.members), len(b.members)))
	})
	return all
}

// endedSamples is how many samples a part of a line has at least that has ended, callersAsked how many callers of the
// line tell its parts apart.
const (
	endedSamples = 5
	callersAsked = 8
)

// ongoing leaves of the sites of a line those whose callers still call it: the others, as what a program reads in when
// it starts, are no growth of the rest. If all have ended it leaves all. Those whose objects die are left, too: the
// rest may take their place.
func (h *detector) ongoing(r *heap.Symbols, ks []sites.Key) []sites.Key {
	if len(ks) < 2 {
		return ks
	}
	above := make(map[sites.Key]uint64, len(ks)) // the frames that call it
	for _, k := range ks {
		x, _ := ownFrame(r, k.Frame)
		above[k] = x.Parent
	}
	left := h.stillCalled(r, slices.Clone(ks), above, callersAsked)
	if len(left) == len(ks) || len(left) == 0 || h.Sum(left).Lasts() < minSamples {
		return ks
	}
	return left
}

// stillCalled leaves out sites whose callers have ended, by ever more of these.
func (h *detector) stillCalled(r *heap.Symbols, ks []sites.Key, above map[sites.Key]uint64, asked int) []sites.Key {
	taken, last := 0.0, 0.0
	for _, k := range ks {
		taken, last = taken+h.Sites[k].Taken, max(last, h.Sites[k].Last)
	}
	if taken < endedSamples {
		return ks
	}
	if h.quiet(taken, last, h.clockTime) { // else a sum says it no better
		s := h.Sum(ks)
		if n := s.Lasts(); n >= endedSamples && h.ended(s) && float64(s.LiveSamples) >= keptYoung*float64(n) {
			return nil
		}
	}
	if len(ks) == 1 || asked == 0 {
		return ks
	}
	type call struct {
		method uint64
		bci    int64
	}
	parts := map[call][]sites.Key{}
	for _, k := range ks {
		f := r.Frames[above[k]]
		above[k] = f.Parent
		c := call{f.Method, f.BCI}
		parts[c] = append(parts[c], k)
	}
	var left []sites.Key
	for _, part := range parts {
		left = append(left, h.stillCalled(r, part, above, asked-1)...)
	}
	return left
}

// largestFirst sorts keys of sites by their live bytes.
func (h *detector) largestFirst(ks []sites.Key) {
	type sized struct {
		k    sites.Key
		live float64
	}
	all := make([]sized, len(ks)) // to look a site up for each comparison would take longer than to sort
	for i, k := range ks {
		all[i] = sized{k, float64(h.Sites[k].LiveBytes)}
	}
	slices.SortFunc(all, func(a, b sized) int {
		if a.live != b.live {
			return cmp.Compare(b.live, a.live)
		}
		return cmp.Or(cmp.Compare(a.k.Frame, b.k.Frame), cmp.Compare(a.k.Class.Name, b.k.Class.Name),
			cmp.Compare(a.k.Class.Loader, b.k.Class.Loader))
	})
	for i, x := range all {
		ks[i] = x.k
	}
}

// single leaves of a group of sites and its members those that say more: the members if they explain the group, else
// the group; of a method nothing but what it is named for, if that is so.
func single(all []candidate) []candidate {
	at, named := map[sites.Key]int{}, map[sites.Key]bool{}
	for i, c := range all {
		if c.members == nil {
			at[c.key] = i
			named[c.key] = true
		}
		for _, k := range c.members {
			named[k] = named[k] || !c.wide
		}
	}
	drop := make([]bool, len(all))
	for i, c := range all {
		if c.wide {
			drop[i] = slices.ContainsFunc(c.members, func(k sites.Key) bool { return named[k] })
		}
		if c.members == nil || c.wide {
			continue
		}
		grown, best := 0.0, 0.0
		for _, k := range c.members {
			if j, ok := at[k]; ok {
				grown += all[j].grown
				best = max(best, all[j].grown)
			}
		}
		if best >= keptMost*c.grown {
			drop[i] = true
			continue
		}
		for _, k := range c.members {
			if j, ok := at[k]; ok {
				drop[j] = true
			}
		}
	}
	out := all[:0]
	for i, c := range all {
		if !drop[i] {
			out = append(out, c)
		}
	}
	return out
}

// scale lets no site grow by more than it has: the series are what samples stand for, and the figures of a state are
// less where that is more than there is of a class (sites.State). Where it is less, a site has its share of the rest.
func (h *detector) scale(r *heap.Cursor, named, others []candidate) {
	h.figures = nil
	if len(named)+len(others) == 0 || len(h.last) == 0 || h.stale() {
		return
	}
	live := (&sites.State{Symbols: r.Symbols, Samples: slices.Collect(r.Live.Values()), Types: h.last}).Tallies()
	h.figures = live
	less := h.underestimated(r)
	for _, all := range [...][]candidate{named, others} {
		for i := range all {
			c := &all[i]
			if c.exact {
				continue
			}
			has, stood, more := 0.0, 0.0, 0.0
			for _, k := range c.keys() {
				if t := live[k]; t != nil {
					figure, s := t.Bytes()
					has, stood = has+figure, stood+s
					more += figure * max(1, less[k.Class])
				}
			}
			if stood <= 0 || has <= 0 {
				continue
			}
			f := min(1, has/stood) * more / has
			c.slope, c.low, c.high, c.grown = f*c.slope, f*c.low, f*c.high, min(f*c.grown, has)
		}
	}
}

// mostLess bounds by how much samples are taken to be too few.
const mostLess = 1.6

// underestimated gives by how much more there is of a class than samples stand for, of what came after the first known
// state: samples are chosen by chance, and they were too few in most of the programs that were tried. Of a recording
// that began after its JVM it says nothing: then nobody knows what was there before.
func (h *detector) underestimated(r *heap.Cursor) map[sites.Class]float64 {
	if h.late || h.early == nil {
		return nil
	}
	stood, exact := map[sites.Class]float64{}, map[sites.Class]float64{}
	class := map[uint32]sites.Class{} // there are many samples of each
	of := func(typ uint32) sites.Class {
		c, ok := class[typ]
		if !ok {
			c = sites.ClassOf(r.Symbols, typ).Folded()
			class[typ] = c
		}
		return c
	}
	for s := range sites.ByID(r.Live.Values()) {
		if s.Birth > h.earlyAt {
			stood[of(uint32(s.Type))] += s.Weight * float64(s.Size)
		}
	}
	for id, n := range h.last {
		x := float64(n.Bytes)
		if id < len(h.early) {
			x -= float64(h.early[id].Bytes)
		}
		if n.Objects > 0 {
			exact[of(uint32(id))] += x
		}
	}
	for c, n := range stood {
		stood[c] = min(mostLess, exact[c]/max(n, 1))
	}
	return stood
}

// stale says whether the newest known state is of before the last tenth of the window, as at depth samples: what has
// come since is not in it.
func (h *detector) stale() bool {
	n := len(h.Times)
	known := -1
	for i, b := range h.Live {
		if b >= 0 {
			known = i
		}
	}
	return known >= 0 && len(h.spaces) == n && h.Times[known] < h.Times[n-1]-(h.Times[n-1]-h.From)/staleShare
}

// staleShare divides the window: its last part, of which a state has to be known.
const staleShare = 10

// heapGrowth gives the growth of all that is known to live over the window, without what was dropped again, and what
// lives at its end, 0 if it is never known. Where the newest state is stale it is what was in use: garbage of old space
// counts then, too.
func (h *detector) heapGrowth() (grown, live float64) {
	var v []float64
	stale := h.stale()
	for i, b := range h.Live {
		if stale {
			b = float64(h.spaces[i].used)
		}
		if b >= 0 {
			v = append(v, b)
		}
	}
	if len(v) == 0 {
		return 0, 0
	}
	low := envelope(v)
	return low[len(low)-1] - low[0], low[len(low)-1]
}
