package history

import (
	"math"
	"slices"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/heap"
)

// siteHistories are the histories of sites while they are made. Their figures are those of sites.State, worked out anew
// for the types of which samples came or died.
type siteHistories struct {
	r     *heap.Replay
	types map[uint64]*typeSums
	by    map[sites.Key]*siteHistory
}

// sums are the samples of a site or a type, and what they stand for.
type sums struct {
	n, size        uint64
	objects, bytes float64
}

func (x *sums) add(s *heap.Sample) {
	x.n++
	x.size += s.Size
	x.objects += s.Weight
	x.bytes += s.Weight * float64(s.Size)
}

func (x *sums) sub(s *heap.Sample) {
	x.n--
	x.size -= s.Size
	x.objects -= s.Weight
	x.bytes -= s.Weight * float64(s.Size)
	if x.n == 0 { // what rounding left
		*x = sums{}
	}
}

// typeSums are the live samples of a type.
type typeSums struct {
	sums
	class   sites.Class
	sites   map[uint64]*siteSums // by frame
	changed bool                 // since the last state that is known
}

// siteSums are those of one site of a type, and what it had in the last state that was looked at.
type siteSums struct {
	sums
	now   float64 // bytes
	nowN  int64   // samples
	total *siteHistory
}

// siteHistory is the history of a site of a class, which may have several types.
type siteHistory struct {
	History
	key   sites.Key
	parts []*siteSums
}

func newSiteHistories(r *heap.Replay) *siteHistories {
	return &siteHistories{r: r, types: map[uint64]*typeSums{}, by: map[sites.Key]*siteHistory{}}
}

func (x *siteHistories) of(s *heap.Sample) (*typeSums, *siteSums) {
	t := x.types[s.Type]
	if t == nil {
		t = &typeSums{class: sites.ClassOf(x.r.Symbols, uint32(s.Type)).Folded(), sites: map[uint64]*siteSums{}}
		x.types[s.Type] = t
	}
	p := t.sites[s.Frame]
	if p == nil {
		k := sites.Key{Frame: s.Frame, Class: t.class}
		h := x.by[k]
		if h == nil {
			h = &siteHistory{key: k}
			x.by[k] = h
		}
		p = &siteSums{total: h}
		t.sites[s.Frame], h.parts = p, append(h.parts, p)
	}
	return t, p
}

// collection takes in the samples that the newest collection found alive for the first time, and dead. They count if
// its state is known.
func (x *siteHistories) collection(known bool) {
	for _, s := range x.r.Resolved {
		t, p := x.of(s)
		t.add(s)
		p.add(s)
		if t.changed = true; known {
			p.total.Born++
		}
	}
	for _, s := range x.r.Died {
		t, p := x.of(s)
		if p.n == 0 {
			continue
		}
		t.sub(s)
		p.sub(s)
		if t.changed = true; known {
			p.total.Died++
		}
	}
}

// fit gives stats.Total.Fit of a type as sites.State does.
func (x *siteHistories) fit(typ uint64, t *typeSums) (objects, bytes float64) {
	var all heap.Count
	if per := x.r.State.PerType(); typ < uint64(len(per)) {
		all = per[typ]
	}
	return sites.Fit(all, t.n, t.size, &stats.Total{Sum: t.objects}, &stats.Total{Sum: t.bytes})
}

// state takes in what lives after collection i, of the types that changed.
func (x *siteHistories) state(i int32) {
	for typ, t := range x.types {
		if t.changed {
			t.changed = false
			x.figure(i, typ, t)
		}
	}
}

func (x *siteHistories) figure(i int32, typ uint64, t *typeSums) {
	_, f := x.fit(typ, t)
	for frame, p := range t.sites {
		p.now, p.nowN = float64(p.size)+f*(p.bytes-float64(p.size)), int64(p.n)
		p.total.change(i)
		if p.n == 0 {
			delete(t.sites, frame)
			p.total.parts = slices.DeleteFunc(p.total.parts, func(q *siteSums) bool { return q == p })
		}
	}
}

// change adds what lives after collection i, if that is a change.
func (h *siteHistory) change(i int32) {
	bytes, n := 0.0, int64(0)
	for _, p := range h.parts {
		bytes, n = bytes+p.now, n+p.nowN
	}
	b, m := uint64(math.Round(max(0, min(bytes, 1<<62)))), len(h.At)
	switch {
	case m > 0 && h.At[m-1] == i:
		h.Bytes[m-1], h.Samples[m-1] = b, n
	case m == 0 && n > 0, m > 0 && (h.Bytes[m-1] != b || h.Samples[m-1] != n):
		h.At, h.Bytes, h.Samples = append(h.At, i), append(h.Bytes, b), append(h.Samples, n)
	}
}

// end takes in all that lives after gc, which is collection i, the last one; what was born up to old has survived.
func (x *siteHistories) end(i int32, gc, old uint64) {
	type age struct{ sum, weight, old, oldBytes float64 }
	ages := map[*siteHistory]*age{}
	fits := map[uint64][2]float64{}
	for typ, t := range x.types {
		o, b := x.fit(typ, t)
		fits[typ] = [2]float64{o, b}
		x.figure(i, typ, t)
	}
	for s := range sites.ByID(x.r.Live.Values()) {
		t := x.types[s.Type]
		if t == nil || t.sites[s.Frame] == nil {
			continue
		}
		h := t.sites[s.Frame].total
		a := ages[h]
		if a == nil {
			a = &age{}
			ages[h] = a
		}
		f := fits[s.Type]
		w := 1 + f[0]*(s.Weight-1)
		a.sum += w * float64(gc-min(gc, s.Birth))
		a.weight += w
		if s.Birth <= old {
			a.old += w
			a.oldBytes += float64(s.Size) * (1 + f[1]*(s.Weight-1))
		}
	}
	for h, a := range ages {
		h.MeanAge, h.Old, h.OldBytes = a.sum/a.weight, uint64(math.Round(a.old)), uint64(math.Round(a.oldBytes))
	}
}

// all gives the histories of the sites of which a sample lived.
func (x *siteHistories) all() (out []History) {
	var classes []sites.Class
	for k := range x.by {
		classes = append(classes, k.Class)
	}
	shared := sites.Loaders(x.r.Symbols, classes)
	for k, h := range x.by {
		if len(h.At) > 0 {
			h.Class, h.Loader = k.Class.Name, shared[k.Class]
			h.Site = sites.Stack(x.r.Symbols, k.Frame, sites.MaxFrames)
			out = append(out, h.History)
		}
	}
	return out
}
