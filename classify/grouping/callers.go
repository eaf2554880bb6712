package grouping

import (
	"slices"

	"github.com/heapcam/heapcam/classify"
)

// Of an object whose innermost frame alone is exact (classify.World.Callers) the callers are drawn. A group that
// depends on them may have none of the drawn objects or all that could be in it: those of the nearest group above that
// does not depend on callers. These are its bounds.

// callers is what a node knows of drawn callers.
type callers struct {
	depth   int        // of its key, in the hierarchy of its classifier
	depends bool       // which objects it has depends on callers
	pool    []drawnSum // that could be in it, as drawnIn gives them
}

// draws is what a builder knows of drawn callers.
type draws struct {
	drawn    bool       // a tuple has them
	filtered bool       // a filter looks at callers
	pool     []drawnSum // what has drawn callers before that
}

// filter takes the items that filters will look at.
func (b *builder) filter(items []item, filters []classify.Filter) {
	b.filtered = slices.ContainsFunc(filters, func(f classify.Filter) bool { return f.Callers })
	if b.drawn && b.filtered {
		b.pool = b.drawnIn(items)
	}
}

// drawnSum counts objects with drawn callers.
type drawnSum struct{ objects, bytes uint64 }

func (s *drawnSum) add(objects, bytes uint64) {
	s.objects += objects
	s.bytes += bytes
}

// drawnIn sums what has drawn callers: in all, and after that of each part, if tuples have parts.
func (b *builder) drawnIn(items []item) []drawnSum {
	sums := make([]drawnSum, 1+b.parts)
	for _, it := range items {
		if t := &b.ts[it.t]; t.Drawn {
			sums[0].add(t.Objects, t.Bytes)
			if b.parts > 0 {
				sums[1+t.Part].add(t.Objects, t.Bytes)
			}
		}
	}
	return sums
}

// both sums parts from one to another; of sums as drawnIn gives them.
func both(sums []drawnSum, from, to int) (sum drawnSum) {
	for p := from; p <= to && 1+p < len(sums); p++ {
		sum.add(sums[1+p].objects, sums[1+p].bytes)
	}
	return sum
}

// widen lets f, which has own objects with drawn callers, have none of these or all of pool.
func (f *Figure) widen(own, pool drawnSum) {
	if pool.objects == 0 {
		return
	}
	f.ObjLow, f.ObjHigh = f.ObjLow-min(f.ObjLow, own.objects), f.ObjHigh+pool.objects-own.objects
	f.BytesLow, f.BytesHigh = f.BytesLow-min(f.BytesLow, own.bytes), f.BytesHigh+pool.bytes-own.bytes
	f.Estimated = true
}

// drawAll is draw of n and of all that is below it.
func (b *builder) drawAll(n, parent *Node) {
	if !b.drawn { // mostly, and there are many nodes
		return
	}
	b.draw(n, parent)
	for _, c := range n.Children {
		b.drawAll(c, n)
	}
}

// draw says of n how many of its objects depend on drawn callers, and widens its bounds by what may be otherwise.
// parent is nil for the root.
func (b *builder) draw(n, parent *Node) {
	if !b.drawn {
		return
	}
	x, own := &callers{}, b.drawnIn(n.items)
	n.callers = x
	if parent == nil {
		x.depends, x.pool = b.filtered, b.pool
	} else {
		c := &b.by[n.Level]
		if c.Cardinality == classify.Hierarchy && parent.Level == n.Level {
			x.depth = parent.callers.depth + 1
		}
		x.depends, x.pool = parent.callers.depends || c.Callers > 0 && x.depth+1 >= c.Callers, parent.callers.pool
	}
	if !x.depends {
		x.pool = own
		return
	}
	sampled := slices.ContainsFunc(n.items, func(it item) bool { return b.ts[it.t].Sampled })
	if x.pool[0].objects == 0 || !sampled {
		return
	}
	n.Drawn, n.Share = own[0].objects, float64(own[0].objects)/float64(x.pool[0].objects)
	f := Figure{n.Objects, n.Bytes, n.Estimated, n.Samples, n.Objects, n.Objects, n.Bytes, n.Bytes}
	if n.Estimated {
		f.ObjLow, f.ObjHigh, f.BytesLow, f.BytesHigh = *n.ObjLow, *n.ObjHigh, *n.BytesLow, *n.BytesHigh
	}
	f.widen(own[0], x.pool[0])
	n.figure(f)
	n.Parts = slices.Clone(n.Parts) // another node of the same items may share them
	for p := range n.Parts {
		n.Parts[p].widen(own[1+p], x.pool[1+p])
	}
	if last := len(n.Parts) - 1; last >= 0 {
		n.Was.widen(both(own, 0, classify.PartBoth), both(x.pool, 0, classify.PartBoth))
		n.Now.widen(both(own, classify.PartBoth, last), both(x.pool, classify.PartBoth, last))
	}
}

// dependsOnDrawn says whether a group of items may depend on drawn callers.
func (b *builder) dependsOnDrawn(items []item) bool {
	if !b.filtered && !slices.ContainsFunc(b.by, func(c classify.Classifier) bool { return c.Callers > 0 }) {
		return false
	}
	return slices.ContainsFunc(items, func(it item) bool { return b.ts[it.t].Drawn })
}

// ofSites says whether a classifier looks at allocation sites, which are known of samples alone.
func ofSites(c classify.Classifier) bool { return c.Needs&classify.AttrSite != 0 }
