package leak

import (
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
)

// living are the live samples by site. Each verdict asks for those of its sites: to look through all samples for each
// takes minutes where every object is one.
type living struct {
	groups  []group
	at      map[sites.Key][]int32 // in groups, one for each type of the class
	callers *sites.Callers        // by all of them
}

// group are the live samples of one site and type.
type group struct {
	typ     uint64
	samples []*heap.Sample
}

// bySite gives the live samples of r by site, sorted once for each report.
func (h *detector) bySite(r *heap.Cursor) *living {
	if h.living != nil {
		return h.living
	}
	l := &living{at: map[sites.Key][]int32{}, callers: h.callers.Among(r.Symbols, r.Live.Values())}
	known := map[[2]uint64]int32{} // by frame and type, which are quicker to look up than names
	for _, s := range r.Live.All() {
		x := [2]uint64{s.Frame, s.Type}
		i, ok := known[x]
		if !ok {
			i = int32(len(l.groups))
			k := h.Key(r.Symbols, s)
			known[x], l.at[k] = i, append(l.at[k], i)
			l.groups = append(l.groups, group{typ: s.Type})
		}
		g := &l.groups[i]
		g.samples = append(g.samples, s)
	}
	h.living = l
	return l
}

// of calls f with each live sample of a site.
func (l *living) of(k sites.Key, f func(*heap.Sample)) {
	for _, i := range l.at[k] {
		for _, s := range l.groups[i].samples {
			f(s)
		}
	}
}
