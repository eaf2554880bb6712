package retention

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace/references"
)

// What Labels names: this many holders, and for each object this many classes that it points to or is pointed from.
const (
	mostHolders = 1000
	mostClasses = 32
)

// smallHolder and moreClasses are keys of what Labels does not name.
const (
	smallHolder = "(holders that retain little)"
	moreClasses = "(more classes)"
	notHeld     = "(not held)"
)

// Labels numbers the objects by what classifiers see of their references: the numbers are indexes of the Refs. The
// first of these is of no object.
func (h *Heap) Labels(a classify.Attr) (*heap.Labels, []classify.Refs) {
	g := h.Graph
	b := &labeller{h: h, a: a, at: map[string]uint32{}, refs: []classify.Refs{{}}}
	if a&classify.AttrRoot != 0 {
		b.kinds = g.RootKinds()
	}
	if a&classify.AttrHolder != 0 {
		b.nameHolders()
	}
	if a&(classify.AttrTo|classify.AttrFrom) != 0 {
		b.follow()
	}
	l := &heap.Labels{Words: g.L.Addr, Label: make([]uint32, g.Objects())}
	for i := range l.Label {
		l.Label[i] = b.number(i)
	}
	return l, b.refs
}

// labeller numbers what objects have in common.
type labeller struct {
	h    *Heap
	a    classify.Attr
	at   map[string]uint32 // by key
	refs []classify.Refs

	kinds   []references.RootKind
	top     []int       // by object
	holder  map[int]int // by top: its place in holders
	holders []string
	classes *classSets
	to      []uint32 // by object: a set
	from    []uint32
	key     []byte
}

// number gives the label of object i.
func (b *labeller) number(i int) uint32 {
	g, a := b.h.Graph, b.a
	k := b.key[:0]
	put := func(x uint64) { k = binary.AppendUvarint(k, x) }
	if a&classify.AttrReach != 0 {
		s, ok := g.Strength(i)
		put(uint64(s)<<1 | uint64(map[bool]int{true: 1}[ok]))
	}
	if a&classify.AttrRoot != 0 {
		put(uint64(b.kinds[i]))
	}
	if a&classify.AttrHolder != 0 {
		put(uint64(b.holderOf(i)))
	}
	if a&classify.AttrRetained != 0 {
		put(g.Retained(i))
	}
	if a&classify.AttrTo != 0 {
		put(uint64(b.to[i]))
	}
	if a&classify.AttrFrom != 0 {
		put(uint64(b.from[i]))
	}
	health := ""
	if a&classify.AttrHealth != 0 {
		health = b.h.Health(i)
		k = append(k, health...)
	}
	b.key = k
	n, ok := b.at[string(k)]
	if !ok {
		n = uint32(len(b.refs))
		b.at[string(k)] = n
		b.refs = append(b.refs, b.describe(i, health))
	}
	return n
}

// describe says what objects with the label of object i have in common.
func (b *labeller) describe(i int, health string) (r classify.Refs) {
	g := b.h.Graph
	nothing := classify.NotReached
	if Settles(g.L.Missing) {
		nothing = classify.Unreachable
	}
	if b.a&classify.AttrReach != 0 {
		if s, ok := g.Strength(i); ok {
			r.Reach = s.String()
		} else {
			r.Reach = nothing
		}
	}
	if b.a&classify.AttrRoot != 0 {
		if r.Root = nothing; b.kinds[i] != graph.NoRoot {
			r.Root = b.kinds[i].String()
		}
	}
	if b.a&classify.AttrHolder != 0 {
		r.Holder = b.holders[b.holderOf(i)]
	}
	if b.a&classify.AttrRetained != 0 {
		r.Retained = g.Retained(i)
	}
	if b.a&classify.AttrTo != 0 {
		r.To = b.classes.names(b.to[i])
	}
	if b.a&classify.AttrFrom != 0 {
		r.From = b.classes.names(b.from[i])
	}
	r.Health = health
	return r
}

// nameHolders names the outermost holders that retain most.
func (b *labeller) nameHolders() {
	g := b.h.Graph
	b.top, b.holder, b.holders = g.Outermost(), map[int]int{}, []string{notHeld, smallHolder}
	var tops []int
	for i, t := range b.top {
		if i == t {
			tops = append(tops, i)
		}
	}
	slices.SortStableFunc(tops, func(x, y int) int { return cmp.Compare(g.Retained(y), g.Retained(x)) })
	named := map[string]int{}
	for _, t := range tops[:min(len(tops), mostHolders)] {
		p, _ := g.PathTo(t)
		name := string(p.Text())
		if _, ok := named[name]; !ok {
			named[name] = len(b.holders)
			b.holders = append(b.holders, name)
		}
		b.holder[t] = named[name]
	}
}

// holderOf gives the place of an object's holder in holders.
func (b *labeller) holderOf(i int) int {
	t := b.top[i]
	if t == graph.None {
		return 0
	}
	if n, ok := b.holder[t]; ok {
		return n
	}
	return 1
}

// follow finds the classes that each object points to, and is pointed from.
func (b *labeller) follow() {
	g := b.h.Graph
	b.classes = newClassSets(g.L.Shapes)
	b.to, b.from = make([]uint32, g.Objects()), make([]uint32, g.Objects())
	for i := range g.Objects() {
		_, reached := g.Strength(i)
		for _, s := range g.L.Of(i) {
			t, ok := g.Target(s)
			if !ok {
				continue
			}
			b.to[i] = b.classes.with(b.to[i], g.L.Code[t])
			if reached {
				b.from[t] = b.classes.with(b.from[t], g.L.Code[i])
			}
		}
	}
}

// classSets numbers sets of class names; 0 is the empty one.
type classSets struct {
	name []uint32 // by shape: the number of its class
	all  []string // by that
	sets [][]uint32
	next map[[2]uint32]uint32 // by set and class
	at   map[string]uint32    // by content
}

func newClassSets(shapes []references.Shape) *classSets {
	c := &classSets{name: make([]uint32, len(shapes)), sets: [][]uint32{nil}, next: map[[2]uint32]uint32{},
		at: map[string]uint32{}}
	number := map[string]uint32{}
	for i := range shapes {
		n, ok := number[shapes[i].Name]
		if !ok {
			n = uint32(len(c.all))
			number[shapes[i].Name] = n
			c.all = append(c.all, graph.Name(shapes[i].Name))
		}
		c.name[i] = n
	}
	return c
}

// with gives a set and the class of a shape. A set that is full stays as it is.
func (c *classSets) with(set, shape uint32) uint32 {
	k := [2]uint32{set, c.name[shape]}
	if to, ok := c.next[k]; ok {
		return to
	}
	s := c.sets[set]
	at, had := slices.BinarySearch(s, k[1])
	to := set
	if !had && len(s) <= mostClasses {
		s = slices.Insert(slices.Clone(s), at, k[1])
		var content []byte
		for _, x := range s {
			content = binary.AppendUvarint(content, uint64(x))
		}
		var ok bool
		if to, ok = c.at[string(content)]; !ok {
			to = uint32(len(c.sets))
			c.at[string(content)] = to
			c.sets = append(c.sets, s)
		}
	}
	c.next[k] = to
	return to
}

// names gives the classes of a set, sorted.
func (c *classSets) names(set uint32) []string {
	s := c.sets[set]
	var out []string
	for _, x := range s[:min(len(s), mostClasses)] {
		out = append(out, c.all[x])
	}
	slices.Sort(out)
	if len(s) > mostClasses {
		out = append(out, moreClasses)
	}
	return out
}

// Labels numbers the objects by whether something keeps them alive, as Heap.Labels does for classify.AttrReach; soft
// and final references count as strong ones.
func (l *Liveness) Labels() (*heap.Labels, []classify.Refs) {
	refs := []classify.Refs{{}, {Reach: references.Strong.String()}, {Reach: references.Weak.String()},
		{Reach: classify.NotReached}}
	if l.Settles() {
		refs[3].Reach = classify.Unreachable
	}
	number := [...]uint32{graph.Kept: 1, graph.Weakly: 2, graph.Unreached: 3, graph.Ending: 1}
	out := &heap.Labels{Words: l.addr, Label: make([]uint32, len(l.addr))}
	for i, at := range l.level {
		out.Label[i] = number[at]
	}
	return out, refs
}
