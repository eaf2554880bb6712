package compare

import (
	"maps"
	"slices"

	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
)

// Of objects whose innermost frame alone is exact (--sites exact) the callers are not known. A series has no single
// objects, for which sites.Callers could draw some. So the series of such a site is divided among the sites of the
// samples that end in its frame, by the bytes that these stand for after each collection.

// drawn is what a site has got of such series, in bytes, and what it could have got at most: after the collections of
// which slopes are made (Growth.picks).
type drawn struct {
	bytes, most []float64
	from        []sites.Key // whose series were divided
}

// draw divides the sites of one frame that others end in, before series are scaled. It takes them out of h.Sites.
func (c *Growth) draw(s *heap.Symbols, h *history.Tracker) map[sites.Key]*drawn {
	type innermost struct{ method, bci uint64 }
	at := func(k sites.Key) innermost { return innermost{s.Frames[k.Frame].Method, uint64(s.Frames[k.Frame].BCI)} }
	var alone []sites.Key
	stacks := map[innermost][]uint64{}
	stood := map[uint64][]float64{} // by stack: what its samples stand for
	bytes, objects := make([]float64, len(h.Times)), make([]float64, len(h.Times))
	picks := c.picks(nil)
	spread := func(k sites.Key) (out []float64) {
		h.Sites[k].Spread(bytes, objects)
		for _, i := range picks {
			out = append(out, bytes[i])
		}
		return out
	}
	for _, k := range slices.SortedFunc(maps.Keys(h.Sites), sites.Key.Compare) {
		switch f := s.Frames[k.Frame]; {
		case f.Parent == 0:
			alone = append(alone, k)
		case stood[k.Frame] == nil:
			stacks[at(k)] = append(stacks[at(k)], k.Frame)
			stood[k.Frame] = spread(k)
		default:
			sum(stood[k.Frame], spread(k), 1)
		}
	}
	out := map[sites.Key]*drawn{}
	for _, k := range alone {
		among := stacks[at(k)]
		if len(among) == 0 {
			continue
		}
		whole := spread(k)
		delete(h.Sites, k)
		all := make([]float64, len(picks))
		for _, frame := range among {
			sum(all, stood[frame], 1)
		}
		for _, frame := range among {
			to := sites.Key{Frame: frame, Class: k.Class}
			d := out[to]
			if d == nil {
				d = &drawn{bytes: make([]float64, len(whole)), most: make([]float64, len(whole))}
				out[to] = d
			}
			d.from = append(d.from, k)
			sum(d.most, whole, 1)
			for i, n := range whole {
				if all[i] > 0 {
					d.bytes[i] += n * stood[frame][i] / all[i]
				} else { // no sample lives
					d.bytes[i] += n / float64(len(among))
				}
			}
		}
	}
	return out
}

// share is what part of the objects with its innermost frame a site has got after the last collection, by bytes; 0:
// none were drawn.
func (d *drawn) share() float64 {
	if d == nil || len(d.most) == 0 || d.most[len(d.most)-1] <= 0 {
		return 0
	}
	return d.bytes[len(d.bytes)-1] / d.most[len(d.most)-1]
}

// sum adds x times f to the numbers of to.
func sum(to, x []float64, f float64) {
	for i := range to {
		to[i] += f * x[i]
	}
}

// add adds x times f to v, which has all collections.
func (c *Growth) add(v, x []float64, f float64) {
	if x != nil {
		for n, i := range c.picks(nil) {
			v[i] = max(0, v[i]+f*x[n])
		}
	}
}

// otherCallers widens slopes that draw was asked for: id may have none of what was drawn, or all that it could have.
func (c *Growth) otherCallers(id string, v []float64, perSecond, perByte *Slope) {
	d := c.drawn[id]
	if d == nil {
		return
	}
	for _, other := range [][]float64{nil, d.most} {
		x := slices.Clone(v)
		c.add(x, d.bytes, -1)
		c.add(x, other, 1)
		t, a, y := c.points(x)
		perSecond.widen(slope(t, y))
		perByte.widen(slope(a, y))
	}
}

func (s *Slope) widen(o Slope) { s.Low, s.High = min(s.Low, o.Low), max(s.High, o.High) }
