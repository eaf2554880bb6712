package history

import (
	"cmp"
	"slices"

	"github.com/heapcam/heapcam/heap"
)

// Age says how old the oldest objects of a site were that lived after a floor. A queue or cache that is full drops what
// has a certain age, so its oldest objects are as old after each floor. In one that grows they are older each time.
type Age struct {
	T      float64 // of the floor; of a reference listing when it was taken, which may be long after its collection
	Oldest float64 // when the oldest were allocated, but for one in oldestOf
	N      float64 // samples that lived
}

const (
	oldestOf  = 50  // samples of a site: one may be older than the others
	agedLater = 1.5 // times as far from the window's start as before is the next floor that ages are taken after
	leastAged = 3   // samples of a site, fewer say nothing
)

// age takes the ages at a time after the newest collection, which is a floor.
func (h *Tracker) age(r *heap.Cursor, t float64) {
	h.agedAt = t
	born := map[*Series][]float64{}
	for id, s := range r.Live.All() {
		if !h.dead[id] {
			x := h.site(r.Symbols, s)
			born[x] = append(born[x], h.bornAt(s))
		}
	}
	for x, all := range born {
		if len(all) < leastAged {
			continue
		}
		slices.Sort(all)
		x.Aged = append(x.Aged, Age{t, all[len(all)/oldestOf], float64(len(all))})
	}
}

// sumAges adds up the ages of several sites after each floor: the oldest are as old as on average.
func sumAges(all []Age) (out []Age) {
	slices.SortStableFunc(all, func(a, b Age) int { return cmp.Compare(a.T, b.T) })
	for _, a := range all {
		n := len(out)
		if n == 0 || out[n-1].T != a.T {
			out = append(out, a)
			continue
		}
		x := &out[n-1]
		x.Oldest = (x.Oldest*x.N + a.Oldest*a.N) / (x.N + a.N)
		x.N += a.N
	}
	return out
}
