package grouping

import (
	"slices"

	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/classify"
)

// Outline counts the groups of many states of one recording: it asks classifiers for the keys of each kind of tuple
// once. Nothing may look at more than types and samples. Group 0 is the heap.
type Outline struct {
	Groups []OutlineGroup
	at     map[outlineKey]int32
	by     []classify.Classifier
	kept   []classify.Filter
	first  int  // level from which on groups count estimates
	types  bool // something looks at the type

	sets [][]int32 // groups, of what is alike
	set  map[outlined]int32
	// 1 + places in sets: by kind or, unless something looks at the type, by place and what else Figures says
	in      [2][]int32
	stratum []int32          // by base: its place in strata
	before  []bool           // by base
	strata  map[uint32]int32 // by type
}

// Sampled are the sampled objects of a state, by kinds whose numbers are the same in all states.
type Sampled struct {
	Kinds    []SampledKind                          // that there are so far
	Bases    int                                    // how many
	Describe func(base, place int32) classify.Tuple // without figures; place may be -1
	Seen     []int32                                // kinds of this state
	Sums     []SampledSum                           // of each of these
}

// SampledKind numbers what is known of an object without a sample, too, and where it was allocated.
type SampledKind = struct{ Base, Place int32 }

// OutlineGroup is a group; its parent is before it.
type OutlineGroup struct {
	Parent    int32
	Level     int
	Key       string
	Estimates bool // it counts what samples stand for
}

type outlineKey struct {
	parent, level int32
	key           string
}

// outlined is what classifiers of types and samples alone know of a tuple.
type outlined struct {
	typ uint32
	siteSeen
}

// SampledSum are the sampled objects of one kind, of a state.
type SampledSum struct {
	Objects, Bytes   uint64
	WObjects, WBytes stats.Total
}

// GroupFigure is what a group counts; it is none of the state's if There is false. An estimate has no bounds.
type GroupFigure struct {
	Figure
	There bool
}

// Outlines says whether an outline is possible.
func Outlines(by []classify.Classifier, filters []classify.Filter) bool {
	a, _ := classify.Needs(by, filters)
	return a&classify.AttrAll&^classify.AttrSite == 0
}

// NewOutline begins one. Classifiers and filters are its own from then on.
func NewOutline(by []classify.Classifier, filters []classify.Filter) *Outline {
	o := &Outline{at: map[outlineKey]int32{}, by: by, kept: filters, first: len(by), set: map[outlined]int32{},
		strata: map[uint32]int32{}}
	for i := len(by) - 1; i >= 0; i-- {
		if by[i].Needs&classify.AttrSite != 0 {
			o.first = i
		}
		o.types = o.types || by[i].Needs != classify.AttrSite
	}
	for _, f := range filters {
		if f.Needs&classify.AttrSite != 0 {
			o.first = -1
		}
		o.types = o.types || f.Needs != classify.AttrSite
	}
	o.Groups = []OutlineGroup{{Parent: -1, Level: -1, Key: "heap", Estimates: o.first < 0}}
	return o
}

// Figures counts the groups of a state, which are those of Groups then. rest are its tuples without a sample.
func (o *Outline) Figures(w *classify.World, rest []classify.Tuple, x *Sampled) ([]GroupFigure, error) {
	for b := int32(len(o.stratum)); int(b) < x.Bases; b++ {
		t := x.Describe(b, -1)
		o.stratum, o.before = append(o.stratum, o.stratumOf(&t)), append(o.before, w.Before(&t))
	}
	sets, err := o.classify(w, rest, x)
	if err != nil {
		return nil, err
	}
	// Strata as builder.estimate makes them: a level before the first that looks at samples leaves types whole.
	strata := make([]stratum, len(o.strata))
	skip := func(set int32) bool {
		return o.first == len(o.by) || // nothing is an estimate
			o.first >= 0 && len(o.sets[set]) == 0
	}
	for i := range rest {
		if !skip(sets[i]) {
			strata[o.stratumOf(&rest[i])].add(&rest[i], w.Before(&rest[i]))
		}
	}
	mine := sets[len(rest):]
	for i, k := range x.Seen {
		if !skip(mine[i]) {
			strata[o.stratum[x.Kinds[k].Base]].sample(&x.Sums[i])
		}
	}
	fits := make([][numFits]fit, len(strata))
	for i := range strata {
		fits[i] = strata[i].fits()
	}
	counts := make([]sumsOf, len(o.Groups))
	out := make([]GroupFigure, len(o.Groups))
	for i := range rest {
		t := &rest[i]
		f := &fits[o.stratumOf(t)][1]
		if w.Before(t) {
			f = &fits[o.stratumOf(t)][2]
		}
		for _, g := range o.sets[sets[i]] {
			out[g].There = true
			if o.Groups[g].Estimates {
				counts[g].rest(t.Objects, t.Bytes, f)
			} else {
				counts[g].exact(t.Objects, t.Bytes)
			}
		}
	}
	for i, k := range x.Seen {
		y := &x.Sums[i]
		f := &fits[o.stratum[x.Kinds[k].Base]][0]
		for _, g := range o.sets[mine[i]] {
			out[g].There = true
			if o.Groups[g].Estimates {
				counts[g].sampled(y, f)
			} else {
				counts[g].exact(y.Objects, y.Bytes)
			}
		}
	}
	for g := range out {
		out[g].Figure = counts[g].brief(o.Groups[g].Estimates)
	}
	return out, nil
}

// stratumOf numbers the strata.
func (o *Outline) stratumOf(t *classify.Tuple) int32 {
	i, ok := o.strata[t.Type]
	if !ok {
		i = int32(len(o.strata))
		o.strata[t.Type] = i
	}
	return i
}

// classify gives the sets of rest, and then those of what was seen. It asks for the groups of what has not come before.
func (o *Outline) classify(w *classify.World, rest []classify.Tuple, x *Sampled) ([]int32, error) {
	var fresh []classify.Tuple
	set := func(t classify.Tuple) int32 {
		o.stratumOf(&t)
		k := outlined{siteSeen: siteSeenOf(w, &t)}
		if o.types {
			k.typ = t.Type
		}
		i, ok := o.set[k]
		if !ok {
			i = int32(len(o.set))
			o.set[k] = i
			fresh = append(fresh, t)
		}
		return i
	}
	sets := make([]int32, 0, len(rest)+len(x.Seen))
	for _, t := range rest {
		sets = append(sets, set(t))
	}
	for i, k := range x.Seen {
		d, y := x.Kinds[k], &x.Sums[i]
		// What is alike has one number: kinds, or places where nobody looks at the type.
		at, n := &o.in[0], k
		if !o.types {
			at, n = &o.in[1], 2*d.Place
			if o.before[d.Base] {
				n++
			}
		}
		if n *= 2; y.WObjects.Sum <= float64(y.Objects) {
			n++
		}
		if grow := int(n) + 1 - len(*at); grow > 0 {
			*at = append(*at, make([]int32, grow)...)
		}
		if (*at)[n] == 0 {
			t := x.Describe(d.Base, d.Place)
			t.Objects, t.Bytes, t.WObjects, t.WBytes = y.Objects, y.Bytes, y.WObjects, y.WBytes
			(*at)[n] = set(t) + 1
		}
		sets = append(sets, (*at)[n]-1)
	}
	if len(fresh) == 0 {
		return sets, nil
	}
	b := newBuilder(w, fresh, o.by)
	items := b.all()
	for _, f := range o.kept {
		kept := items[:0]
		for _, it := range items {
			ok, err := f.Keep(w, &fresh[it.t])
			if err != nil {
				return nil, err
			}
			if ok {
				kept = append(kept, it)
			}
		}
		items = kept
	}
	in := make([][]int32, len(fresh))
	for _, it := range items {
		in[it.t] = append(in[it.t], 0)
	}
	if err := o.split(b, 0, items, 0, 0, in); err != nil {
		return nil, err
	}
	o.sets = append(o.sets, in...)
	return sets, nil
}

// split tells the items of a group apart, as builder.split does, and adds the groups to those that in says of each.
func (o *Outline) split(b *builder, parent int32, items []item, level, depth int, in [][]int32) error {
	if level == len(b.by) || len(items) == 0 {
		return nil
	}
	groups, own, _, err := b.groups(items, level, depth)
	if err != nil {
		return err
	}
	l, d := level+1, 0
	if b.by[level].Cardinality == classify.Hierarchy {
		l, d = level, depth+1
	}
	for _, g := range groups {
		k := outlineKey{parent, int32(level), b.names[g.key]}
		id, ok := o.at[k]
		if !ok {
			if id = int32(len(o.Groups)); id == MaxNodes {
				return ErrTooMany
			}
			o.at[k] = id
			o.Groups = append(o.Groups, OutlineGroup{parent, level, k.key, level >= o.first})
		}
		for _, it := range g.items {
			in[it.t] = append(in[it.t], id)
		}
		if err := o.split(b, id, g.items, l, d, in); err != nil {
			return err
		}
	}
	return o.split(b, parent, own, level+1, 0, in)
}

// Path gives the keys that lead to a group from the heap.
func (o *Outline) Path(group int32) []string {
	path := []string{}
	for ; group > 0; group = o.Groups[group].Parent {
		path = append(path, o.Groups[group].Key)
	}
	slices.Reverse(path)
	return path
}
