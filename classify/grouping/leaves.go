package grouping

import (
	"slices"

	"github.com/heapcam/heapcam/classify"
)

// Step is a key on the way to a leaf: its number in Tree.Keys, and the index of the classifier that gave it.
type Step struct{ Key, Level int32 }

// Leaf is a part of a group without groups below it, or of what no group below a group has. Figures are not rounded:
// leaves may be small and many.
type Leaf struct {
	Path           []Step // from the root's children on, valid until the next leaf
	Objects, Bytes float64
	Estimated      bool
	Drawn          float64 // of the objects: their callers were drawn
}

// Keys gives the names of all groups, by number. They are only read.
func (t *Tree) Keys() []string { return t.b.names }

// Tuples is how many tuples the tree was made of, but for those that a filter left out.
func (t *Tree) Tuples() int { return len(t.Root.items) }

// Leaves calls f for each leaf of the tree; of one group there may be several. It makes no groups and no bounds, so
// that it takes a fraction of the time that All takes.
func (t *Tree) Leaves(f func(*Leaf)) error {
	b := *t.b
	b.slot = make([]int32, len(b.slot))
	b.fits = slices.Clip(b.fits)
	w := leafWalk{b: &b, f: f, site: slices.IndexFunc(b.by, ofSites)}
	return w.walk(t.Root.items, 0, 0, t.Root.est)
}

type leafWalk struct {
	b    *builder
	f    func(*Leaf)
	leaf Leaf
	site int // level from which on groups are estimates; negative: none
}

// walk gives the leaves of items that a level tells apart at a depth, as builder.split makes nodes of them. Only the
// levels above the first estimates need groups: samples stand for others of their group.
func (w *leafWalk) walk(items []item, level, depth int, est bool) error {
	b := w.b
	if est || w.site < level || len(items) == 0 {
		return w.each(items, level, est)
	}
	if level == w.site {
		return w.each(b.estimate(items), level, true)
	}
	l, d := level+1, 0
	if b.by[level].Cardinality == classify.Hierarchy {
		l, d = level, depth+1
	}
	groups, own, _, err := b.groups(items, level, depth)
	if err != nil {
		return err
	}
	for i := range groups {
		w.push(groups[i].key, level)
		if err := w.walk(groups[i].items, l, d, est); err != nil {
			return err
		}
		w.pop(1)
	}
	return w.walk(own, level+1, 0, est)
}

func (w *leafWalk) push(key int32, level int) {
	w.leaf.Path = append(w.leaf.Path, Step{key, int32(level)})
}

func (w *leafWalk) pop(n int) { w.leaf.Path = w.leaf.Path[:len(w.leaf.Path)-n] }

func (w *leafWalk) each(items []item, level int, est bool) error {
	for _, it := range items {
		if err := w.item(it, level, est); err != nil {
			return err
		}
	}
	return nil
}

// item gives the leaves of an item on the levels from level on.
func (w *leafWalk) item(it item, level int, est bool) error {
	if level == len(w.b.by) {
		w.emit(it, est)
		return nil
	}
	ks, err := w.b.keysOf(level, it.t)
	if err != nil {
		return err
	}
	if w.b.by[level].Cardinality == classify.Hierarchy {
		for _, k := range ks {
			w.push(k, level)
		}
		err := w.item(it, level+1, est)
		w.pop(len(ks))
		return err
	}
	for i, k := range ks {
		if i > 0 && slices.Contains(ks[:i], k) {
			continue
		}
		w.push(k, level)
		if err := w.item(it, level+1, est); err != nil {
			return err
		}
		w.pop(1)
	}
	return nil
}

func (w *leafWalk) emit(it item, est bool) {
	x, t := &w.leaf, &w.b.ts[it.t]
	x.Objects, x.Bytes, x.Estimated, x.Drawn = float64(t.Objects), float64(t.Bytes), false, 0
	if est {
		f := &w.b.fits[it.fit]
		if x.Objects, x.Bytes = f.count(t); t.Drawn {
			x.Drawn = x.Objects
		}
		if x.Estimated = t.WObjects.Variance > 0 || t.WBytes.Variance > 0; !x.Estimated {
			var s sumsOf
			s.estimate(t, f)
			x.Estimated = s.figure(true).Estimated
		}
	}
	w.f(x)
}

// Count gives how many groups stand directly below each of nodes. It does not make them.
func (t *Tree) Count(nodes ...*Node) ([]int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]int, len(nodes))
	var seen []int32
	for i, n := range nodes {
		if n.crown != nil {
			out[i] = len(n.crown.groups)
			continue
		}
		var err error
		if out[i], seen, err = t.b.distinct(n.items, int(n.next), int(n.depth), seen[:0]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// distinct counts the groups that a level tells apart at a depth. seen has room for their keys.
func (b *builder) distinct(items []item, level, depth int, seen []int32) (n int, _ []int32, err error) {
	if level == len(b.by) {
		return 0, seen, nil
	}
	var own []item
	for _, it := range items {
		ks, err := b.keysOf(level, it.t)
		if err != nil {
			return 0, seen, err
		}
		if ks = b.here(ks, level, depth); len(ks) == 0 {
			own = append(own, it)
		}
		for _, k := range ks {
			if b.slot[k] == 0 {
				b.slot[k] = 1
				seen = append(seen, k)
			}
		}
	}
	n = len(seen)
	for _, k := range seen {
		b.slot[k] = 0
	}
	if len(own) == 0 { // what ends at an inner node is classified by the next level there
		return n, seen, nil
	}
	more, seen, err := b.distinct(own, level+1, 0, seen[:0])
	return n + more, seen, err
}
