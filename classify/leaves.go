package classify

import "slices"

// Step is a key on the way to a leaf: its number in Tree.Keys, and the index of the classifier that gave it.
type Step struct{ Key, Level int32 }

// Leaf is a group without groups below it, or what no group below a group has. Figures are not rounded: leaves may be
// small and many.
type Leaf struct {
	Path           []Step // from the root's children on, valid until the next leaf
	Objects, Bytes float64
	Estimated      bool
}

// Keys gives the names of all groups, by number. They are only read.
func (t *Tree) Keys() []string { return t.b.names }

// Leaves calls f for each leaf of the tree. It makes no groups and no bounds, so that it takes a fraction of the time
// that All takes. Its error is ErrTooMany.
func (t *Tree) Leaves(f func(*Leaf)) error {
	b := *t.b
	b.slot = make([]int32, len(b.slot))
	b.fits = slices.Clip(b.fits)
	w := leafWalk{b: &b, f: f}
	return w.walk(t.Root.items, 0, 0, t.Root.est)
}

type leafWalk struct {
	b    *builder
	f    func(*Leaf)
	leaf Leaf
	n    int
}

// walk gives the leaves of items that a level tells apart at a depth, as builder.split makes nodes of them.
func (w *leafWalk) walk(items []item, level, depth int, est bool) error {
	b := w.b
	if len(items) == 0 {
		return nil
	}
	if level == len(b.by) {
		return w.emit(items, est)
	}
	c := &b.by[level]
	if c.Needs&AttrSite != 0 && !est {
		est = true
		items = b.estimate(items)
	}
	l, d := level+1, 0
	if c.Cardinality == Hierarchy {
		l, d = level, depth+1
	}
	if len(items) == 1 {
		ks, err := b.keysOf(level, items[0].t)
		if err != nil {
			return err
		}
		switch ks = b.here(ks, level, depth); len(ks) {
		case 0:
			return w.walk(items, level+1, 0, est)
		case 1:
			return w.below(ks[0], level, items, l, d, est)
		}
	}
	groups, own, _, err := b.groups(items, level, depth)
	if err != nil {
		return err
	}
	for i := range groups {
		if err := w.below(groups[i].key, level, groups[i].items, l, d, est); err != nil {
			return err
		}
	}
	return w.walk(own, level+1, 0, est)
}

// below gives the leaves of a group of level of, which the next level tells apart.
func (w *leafWalk) below(key int32, of int, items []item, level, depth int, est bool) error {
	w.leaf.Path = append(w.leaf.Path, Step{key, int32(of)})
	err := w.walk(items, level, depth, est)
	w.leaf.Path = w.leaf.Path[:len(w.leaf.Path)-1]
	return err
}

func (w *leafWalk) emit(items []item, est bool) error {
	if w.n++; w.n > MaxNodes {
		return ErrTooMany
	}
	var s sumsOf
	for _, it := range items {
		if t := &w.b.ts[it.t]; est {
			s.estimate(t, &w.b.fits[it.fit])
		} else {
			s.exact(t.Objects, t.Bytes)
		}
	}
	x := &w.leaf
	x.Objects, x.Bytes, x.Estimated = float64(s.n.Objects), float64(s.n.Bytes), false
	if est {
		x.Objects, x.Bytes = s.o+s.so, s.by+s.sb
		x.Estimated = s.uncertain() || s.figure(true).Estimated
	}
	w.f(x)
	return nil
}
