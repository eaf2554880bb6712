package grouping

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/heapcam/heapcam/classify"
)

// Tree is a grouping whose groups are made when somebody looks at them: whoever shows a tree shows little of it. Its
// nodes are those of Build, figure by figure, but Children is nil: Tree.Children gives them. Any goroutine may use it;
// what it gives is only read.
type Tree struct {
	Root *Node

	mu     sync.Mutex
	b      *builder
	groups int        // that are known
	slots  [2][]int32 // of builders, one a goroutine
}

// crown are the groups below a node. It holds few pointers: there are many groups.
type crown struct {
	groups []sprout
	sorted bool
	parts  []piece
	nodes  map[uint64]*Node // that were made, by part and key
}

// piece is what a classifier tells apart of the items of a node: all, or those whose path in a hierarchy ends there.
type piece struct {
	items     []item // of all groups, side by side
	fits      []fit  // unless nil they are counted as an estimate, with these
	of, level int16  // as of builder.node
	depth     int32
}

// sprout is a group: items[at : at+n] of its part.
type sprout struct {
	bytes uint64
	at, n int32
	key   int32
	part  int32
}

func (c *crown) items(s *sprout) []item { return c.parts[s.part].items[s.at : s.at+s.n] }

// Begin is Build that makes no more than the root. Classifiers are asked for all tuples at once: their errors are
// Begin's, and the World is not looked at afterwards. Tuples have no parts.
func Begin(w *classify.World, ts []classify.Tuple, by []classify.Classifier, filters []classify.Filter) (*Tree, error) {
	b := newBuilder(w, ts, by)
	items, est, err := b.kept(filters)
	if err != nil {
		return nil, err
	}
	for l := range by {
		for _, it := range items {
			if _, err := b.keysOf(l, it.t); err != nil {
				return nil, err
			}
		}
	}
	root := piece{of: -1}
	if est {
		root.fits = b.fits
	}
	t := &Tree{b: b, slots: [2][]int32{b.slot, make([]int32, len(b.slot))}}
	t.Root = t.node("heap", items, &root, nil)
	return t, nil
}

// node makes a node of items of p below parent.
func (t *Tree) node(key string, items []item, p *piece, parent *Node) *Node {
	n := &Node{Key: key, Level: int(p.of), items: items, est: p.fits != nil, fits: p.fits, next: p.level,
		depth: p.depth}
	b := builder{ts: t.b.ts, fits: p.fits}
	n.figure(b.count(items, n.est, -1))
	t.b.draw(n, parent)
	if parent != nil {
		parent.below(n)
	}
	return n
}

// sideTree is how many items nodes have at least, together, whose groups are looked for by two goroutines.
const sideTree = 1 << 14

// open finds the groups below nodes. The caller holds mu.
func (t *Tree) open(nodes ...*Node) error {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return n.crown != nil })
	items := 0
	for _, n := range nodes {
		items += len(n.items)
	}
	found := make([]*crown, len(nodes))
	var next, left atomic.Int64
	left.Store(int64(MaxNodes - t.groups))
	work := func(slot []int32) {
		b := *t.b
		b.slot = slot
		for i := int(next.Add(1)) - 1; i < len(nodes) && left.Load() >= 0; i = int(next.Add(1)) - 1 {
			n := nodes[i]
			c := &crown{}
			b.sprouts(c, n.items, int(n.next), int(n.depth), n.fits)
			left.Add(-int64(len(c.groups)))
			found[i] = c
		}
	}
	if items < sideTree || len(nodes) < 2 {
		work(t.slots[0])
	} else {
		var wg sync.WaitGroup
		wg.Go(func() { work(t.slots[1]) })
		work(t.slots[0])
		wg.Wait()
	}
	if left.Load() < 0 {
		return ErrTooMany
	}
	t.groups = MaxNodes - int(left.Load())
	for i, n := range nodes {
		n.crown = found[i]
	}
	return nil
}

// sprouts adds the groups of items that a level tells apart, as builder.split does.
func (b *builder) sprouts(c *crown, items []item, level, depth int, fits []fit) {
	if level == len(b.by) || len(items) == 0 {
		return
	}
	by := &b.by[level]
	if by.Needs&classify.AttrSite != 0 && fits == nil {
		b.fits = []fit{{mo: 1, mb: 1}}
		items = b.estimate(items)
		fits = b.fits
	}
	l, d := level+1, 0
	if by.Cardinality == classify.Hierarchy {
		l, d = level, depth+1
	}
	groups, own, all, _ := b.groups(items, level, depth) // all keys are known: nothing is asked that could fail
	c.groups = slices.Grow(c.groups, len(groups))
	at, in := int32(0), int32(len(c.parts))
	for _, g := range groups {
		c.groups = append(c.groups, sprout{b.bytesOf(g.items, fits), at, g.n, g.key, in})
		at += g.n
	}
	c.parts = append(c.parts, piece{all, fits, int16(level), int16(l), int32(d)})
	if len(own) > 0 { // what ends at an inner node is classified by the next level there
		b.sprouts(c, own, level+1, 0, fits)
	}
}

// bytesOf gives the bytes of items as count does.
func (b *builder) bytesOf(items []item, fits []fit) (n uint64) {
	if fits == nil {
		for _, it := range items {
			n += b.ts[it.t].Bytes
		}
		return n
	}
	var sampled, rest float64
	for _, it := range items {
		t := &b.ts[it.t]
		if _, n := fits[it.fit].count(t); t.Sampled {
			sampled += n
		} else {
			rest += n
		}
	}
	return rounded(rest + sampled)
}

func rounded(x float64) uint64 { return uint64(math.Round(max(0, min(x, 1<<62)))) }

// before is the order of groups: by bytes, the largest first, then by key.
func (t *Tree) before(x, y *sprout) int {
	if x.bytes != y.bytes {
		return cmp.Compare(y.bytes, x.bytes)
	}
	return strings.Compare(t.b.names[x.key], t.b.names[y.key])
}

func (t *Tree) sort(c *crown) {
	if !c.sorted {
		slices.SortFunc(c.groups, func(x, y sprout) int { return t.before(&x, &y) })
		c.sorted = true
	}
}

// made gives the node of a group below parent.
func (t *Tree) made(s *sprout, parent *Node) *Node {
	c, at := parent.crown, uint64(s.part)<<32|uint64(s.key)
	n := c.nodes[at]
	if n == nil {
		if n = t.node(t.b.names[s.key], c.items(s), &c.parts[s.part], parent); c.nodes == nil {
			c.nodes = map[uint64]*Node{}
		}
		c.nodes[at] = n
	}
	return n
}

// Children gives groups below n in the order of Node.Children, at most most of them, the first skip left out. Its
// error, as that of the others, is ErrTooMany.
func (t *Tree) Children(n *Node, skip, most int) ([]*Node, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.open(n); err != nil {
		return nil, err
	}
	t.sort(n.crown)
	gs := n.crown.groups[min(skip, len(n.crown.groups)):]
	out := make([]*Node, 0, min(most, len(gs)))
	for i := range gs[:min(most, len(gs))] {
		out = append(out, t.made(&gs[i], n))
	}
	return out, nil
}

// Above gives the groups below n that have at least so many bytes, in the order of Node.Children.
func (t *Tree) Above(n *Node, bytes uint64) ([]*Node, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.open(n); err != nil {
		return nil, err
	}
	var large []*sprout
	for i := range n.crown.groups {
		if s := &n.crown.groups[i]; s.bytes >= bytes {
			large = append(large, s)
		}
	}
	slices.SortFunc(large, t.before)
	out := make([]*Node, len(large))
	for i, s := range large {
		out[i] = t.made(s, n)
	}
	return out, nil
}

// Find gives the node at a path of keys, nil if there is none.
func (t *Tree) Find(path ...string) (*Node, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.Root
	for _, k := range path {
		if err := t.open(n); err != nil {
			return nil, err
		}
		t.sort(n.crown) // two may have one key: the first is meant
		i := slices.IndexFunc(n.crown.groups, func(s sprout) bool { return t.b.names[s.key] == k })
		if i < 0 {
			return nil, nil
		}
		n = t.made(&n.crown.groups[i], n)
	}
	return n, nil
}

// All gives a copy of n with all that is below it, as Build gives it.
func (t *Tree) All(n *Node) (*Node, error) {
	b := *t.b
	b.slot, b.room, b.bounds, b.nodes = make([]int32, len(b.slot)), nil, nil, &atomic.Int64{}
	if n.fits != nil {
		b.fits = n.fits
	}
	b.fits = slices.Clip(b.fits)
	all, err := b.node(n.Key, n.items, n.Level, int(n.next), int(n.depth), n.est, nil)
	if err != nil {
		return nil, err
	}
	b.drawn = t.b.drawn
	all.callers, all.Drawn, all.Share = n.callers, n.Drawn, n.Share
	for _, c := range all.Children {
		b.drawAll(c, all)
	}
	if n.Estimated { // its bounds are those that its parent leaves it
		all.figure(Figure{n.Objects, n.Bytes, true, n.Samples, *n.ObjLow, *n.ObjHigh, *n.BytesLow, *n.BytesHigh})
	}
	all.clamp()
	return all, nil
}

// Exact says whether no group's figures are an estimate.
func (t *Tree) Exact() (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.Root.est && !slices.ContainsFunc(t.b.by, ofSites) {
		return true, nil
	}
	if t.b.dependsOnDrawn(t.Root.items) {
		return false, nil
	}
	for _, it := range t.Root.items { // the group that has such a sample is an estimate
		if x := &t.b.ts[it.t]; x.WObjects.Variance > 0 || x.WBytes.Variance > 0 {
			return false, nil
		}
	}
	var exact func(n *Node) (bool, error)
	exact = func(n *Node) (bool, error) { // mostly the first small group that is looked at is an estimate
		if n.Estimated {
			return false, nil
		}
		if n.est && t.sure(n) {
			return true, nil
		}
		if err := t.open(n); err != nil {
			return false, err
		}
		for i := range n.crown.groups {
			s := &n.crown.groups[i]
			if ok, err := exact(t.node("", n.crown.items(s), &n.crown.parts[s.part], n)); !ok || err != nil {
				return false, err
			}
		}
		return true, nil
	}
	return exact(t.Root)
}

// sure says whether nothing of n has bounds other than its figure, so that no part of it is an estimate either.
func (t *Tree) sure(n *Node) bool {
	for _, it := range n.items {
		x, f := &t.b.ts[it.t], &n.fits[it.fit]
		if x.Sampled {
			if x.WObjects.Variance > 0 || x.WBytes.Variance > 0 {
				return false
			}
		} else if f.moLow != f.mo || f.moHi != f.mo || f.mbLow != f.mb || f.mbHigh != f.mb {
			return false
		}
	}
	return true
}

// branch is a group that a search found, or one above such.
type branch struct {
	s     *sprout
	n     *Node // above
	under []branch
}

// search looks for groups whose key matches.
type search struct {
	t     *Tree
	hit   []bool   // by key: it matches
	in    []uint32 // by tuple: the levels on which it has a key that matches
	sizes []uint64 // of the groups found

	least uint64 // no smaller group is shown
	ties  int    // of those of that size no more than there is room for
}

// Search looks below n for groups whose key matches. It gives a copy of n with the most largest of them, without what
// is below them, and all above these; how many there are, groups below others that match left out; and how many of them
// the copy has.
func (t *Tree) Search(n *Node, match func(key string) bool, most int) (found *Node, hits, shown int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.newSearch(n, match)
	if err := t.open(n); err != nil {
		return nil, 0, 0, err
	}
	all, err := s.below(n)
	if err != nil {
		return nil, 0, 0, err
	}
	s.bound(most)
	found = &Node{Key: n.Key, Objects: n.Objects, Bytes: n.Bytes}
	found.Children = s.show(n, all)
	return found, len(s.sizes), min(len(s.sizes), most), nil
}

func (t *Tree) newSearch(n *Node, match func(key string) bool) *search {
	b := t.b
	s := &search{t: t, hit: make([]bool, len(b.names)), in: make([]uint32, len(b.ts))}
	for i, k := range b.names {
		s.hit[i] = match(k)
	}
	// Which levels have a key of a tuple that matches: what has none below need not be looked into.
	for _, it := range n.items {
		for l := range b.by {
			ks, _ := b.keysOf(l, it.t)
			for _, k := range ks {
				if s.hit[k] {
					s.in[it.t] |= 1 << l
				}
			}
		}
	}
	return s
}

// below gives the groups found below n, and those above them.
func (s *search) below(n *Node) (out []branch, err error) {
	c := n.crown
	var deeper []*Node
	for i := range c.groups {
		g := &c.groups[i]
		if s.hit[g.key] {
			s.sizes = append(s.sizes, g.bytes)
			out = append(out, branch{s: g})
			continue
		}
		level := c.parts[g.part].level
		if slices.ContainsFunc(c.items(g), func(it item) bool { return s.in[it.t]>>level != 0 }) {
			x := s.t.made(g, n)
			out, deeper = append(out, branch{s: g, n: x}), append(deeper, x)
		}
	}
	if err := s.t.open(deeper...); err != nil {
		return nil, err
	}
	for i := range out {
		if x := &out[i]; x.n != nil {
			if x.under, err = s.below(x.n); err != nil {
				return nil, err
			}
		}
	}
	return slices.DeleteFunc(out, func(b branch) bool { return b.n != nil && b.under == nil }), nil
}

// bound lets only the most largest groups be shown.
func (s *search) bound(most int) {
	hits := len(s.sizes)
	s.ties = hits
	if hits <= most {
		return
	}
	slices.Sort(s.sizes)
	s.least, s.ties = s.sizes[hits-most], 0
	for _, b := range s.sizes[hits-most:] {
		if b == s.least {
			s.ties++
		}
	}
}

// show gives copies of the groups below n that are shown, with what is shown below them.
func (s *search) show(n *Node, bs []branch) (out []*Node) {
	bs = slices.DeleteFunc(bs, func(b branch) bool { return b.n == nil && b.s.bytes < s.least })
	slices.SortFunc(bs, func(x, y branch) int { return s.t.before(x.s, y.s) })
	for _, x := range bs {
		if x.n == nil && x.s.bytes == s.least {
			if s.ties--; s.ties < 0 {
				continue
			}
		}
		node := *s.t.made(x.s, n)
		if x.n != nil {
			if node.Children = s.show(x.n, x.under); node.Children == nil {
				continue
			}
		}
		out = append(out, &node)
	}
	return out
}
