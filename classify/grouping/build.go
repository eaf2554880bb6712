package grouping

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/heapcam/heapcam/classify"
)

// item is a tuple in a node, and what it counts there: the number of its fit in the builder, and of two states that in
// the first one.
type item struct{ t, fit, was int32 }

// fit says what a tuple counts on estimated levels. What has no sample counts mo times its objects and mb times its
// bytes, with bounds; a sample counts as itself, and mo and mb times as what it stands for besides.
type fit struct {
	mo, mb, moLow, moHi, mbLow, mbHigh float64

	of ceiling // of what is sampled
}

// builder makes a tree. Keys are numbers for it, so that a node's items are separated by counting (as a counting sort
// does).
type builder struct {
	w      *classify.World
	ts     []classify.Tuple
	by     []classify.Classifier
	levels []level
	fits   []fit
	names  []string // by key
	key    map[string]int32
	nodes  *atomic.Int64
	parts  uint8 // 0: tuples have none
	buf    []string
	slot   []int32 // by key: 1 + its place among the groups of the current node, 0 between nodes
	room   []Node  // for nodes to come, in one piece, as they are many
	bounds []uint64
	alone  bool // one of several: it asks no others
	draws
}

// level keeps what a classifier has said.
type level struct {
	keys   []int32
	of     []span            // by tuple
	byType map[uint32]span   // if it looks at nothing else
	bySite map[siteSeen]span // if it looks at that alone
	byAge  map[birthSeen]span
}

// birthSeen is the same of AttrBirth.
type birthSeen struct {
	gc      uint64
	birth   uint32
	atLeast bool
}

func birthSeenOf(t *classify.Tuple) birthSeen { return birthSeen{t.GC, t.Birth, t.AtLeast} }

// siteSeen is what a classifier that needs AttrSite and nothing else knows of a tuple.
type siteSeen struct {
	frame, thread          uint64
	sampled, before, exact bool
	list                   int32
}

func siteSeenOf(w *classify.World, t *classify.Tuple) siteSeen {
	return siteSeen{t.Frame, t.Thread, t.Sampled, w.Before(t), t.WObjects.Sum <= float64(t.Objects), t.List}
}

// span is keys[at : at+n] of a level; n is 0 until asked.
type span struct{ at, n uint32 }

func newBuilder(w *classify.World, ts []classify.Tuple, by []classify.Classifier) *builder {
	b := &builder{w: w, ts: ts, by: by, levels: make([]level, len(by)), fits: []fit{{mo: 1, mb: 1}},
		key: map[string]int32{}, nodes: &atomic.Int64{}}
	for i := range ts {
		b.drawn = b.drawn || ts[i].Drawn
		if ts[i].Part > 0 {
			b.parts = max(b.parts, ts[i].Part+1)
		}
	}
	return b
}

func (b *builder) all() []item {
	items := make([]item, len(b.ts))
	for i := range items {
		items[i].t = int32(i)
	}
	return items
}

// Build makes the tree of tuples. The root's key is "heap". Children are sorted by bytes, the largest first.
func Build(w *classify.World, ts []classify.Tuple, by []classify.Classifier, filters []classify.Filter) (*Node, error) {
	b := newBuilder(w, ts, by)
	items, est, err := b.kept(filters)
	if err != nil {
		return nil, err
	}
	n, err := b.node("heap", items, -1, 0, 0, est, nil)
	if n != nil {
		b.drawAll(n, nil)
		n.clamp()
	}
	return n, err
}

// kept gives what filters leave, and whether it is counted as an estimate.
func (b *builder) kept(filters []classify.Filter) (items []item, est bool, err error) {
	est = slices.ContainsFunc(filters, func(f classify.Filter) bool { return f.Needs&classify.AttrSite != 0 })
	items = b.all()
	if est { // before what is asked for is separated from the rest
		items = b.estimate(items)
	}
	b.filter(items, filters)
	for _, f := range filters {
		kept := items[:0]
		for _, it := range items {
			ok, err := f.Keep(b.w, &b.ts[it.t])
			if err != nil {
				return nil, est, err
			}
			if ok {
				kept = append(kept, it)
			}
		}
		items = kept
	}
	return items, est, nil
}

// estimate gives items the multipliers with which samples stand for what was not sampled. Strata are the types of a
// state: what samples stand for is scaled down if it exceeds what is there, and what they leave is spread over what has
// no sample. What lives in both of two states (PartBoth) has multipliers of each.
func (b *builder) estimate(items []item) []item {
	var list []stratum
	var keys []stratumKey
	strata := map[stratumKey]int32{}
	in := make([]int32, len(items)) // the stratum of each
	of := func(k stratumKey, t *classify.Tuple) int32 {
		at, ok := strata[k]
		if !ok {
			at = int32(len(list))
			strata[k] = at
			list, keys = append(list, stratum{}), append(keys, k)
		}
		list[at].add(t, b.w.Before(t))
		return at
	}
	two := b.parts > 0
	var was []int32 // the stratum of each in the first of two states
	if two {
		was = make([]int32, len(items))
	}
	for i, it := range items {
		t := &b.ts[it.t]
		first := two && t.Part == classify.PartFirst
		if in[i] = of(stratumKey{t.Type, first}, t); two {
			was[i] = in[i]
			if t.Part == classify.PartBoth {
				was[i] = of(stratumKey{t.Type, true}, t)
			}
		}
	}
	ceilings := b.ceilings(keys, list)
	for i := range list {
		list[i].fit = int32(len(b.fits))
		fits := list[i].fits()
		fits[0].of = ceilings[i]
		b.fits = append(b.fits, fits[:]...)
	}
	out := make([]item, len(items))
	for i, it := range items {
		add := int32(0)
		if t := &b.ts[it.t]; !t.Sampled {
			if add = 1; t.List > 0 {
				add = 3
			} else if b.w.Before(t) {
				add = 2
			}
		}
		out[i] = item{t: it.t, fit: list[in[i]].fit + add}
		if two {
			out[i].was = list[was[i]].fit + add
		}
	}
	return out
}

// make gives room for a node.
func (b *builder) make() *Node {
	if len(b.room) == 0 {
		b.room = make([]Node, 256)
	}
	n := &b.room[0]
	b.room = b.room[1:]
	return n
}

// node makes a node of items whose key the classifier of has given; level is the next one, depth how deep it is in
// the hierarchy of that classifier. like, unless nil, is a node of the same items, counted alike.
func (b *builder) node(key string, items []item, of, level, depth int, est bool, like *Node) (*Node, error) {
	if b.nodes.Add(1) > MaxNodes {
		return nil, ErrTooMany
	}
	n := b.make()
	if like != nil { // bounds and parts are shared: what clamps those of the one clamps the other's
		*n = *like
		n.Key, n.Level, n.items, n.Children = key, of, items, nil
		return n, b.split(n, items, level, depth, est)
	}
	n.Key, n.Level, n.items, n.est = key, of, items, est
	f := b.count(items, est, -1)
	n.Objects, n.Bytes, n.Estimated, n.Samples = f.Objects, f.Bytes, f.Estimated, f.Samples
	if f.Estimated {
		if len(b.bounds) == 0 {
			b.bounds = make([]uint64, 1024)
		}
		x := b.bounds[:4:4]
		b.bounds = b.bounds[4:]
		x[0], x[1], x[2], x[3] = f.ObjLow, f.ObjHigh, f.BytesLow, f.BytesHigh
		n.ObjLow, n.ObjHigh, n.BytesLow, n.BytesHigh = &x[0], &x[1], &x[2], &x[3]
	}
	if b.parts > 0 {
		for p := range int(b.parts) {
			n.Parts = append(n.Parts, b.count(items, est, p))
		}
		part := func(it item) uint8 { return b.ts[it.t].Part }
		n.Was = b.counted(items, est, func(it item) (int32, bool) { return it.was, part(it) <= classify.PartBoth })
		n.Now = b.counted(items, est, func(it item) (int32, bool) { return it.fit, part(it) >= classify.PartBoth })
	}
	return n, b.split(n, items, level, depth, est)
}

// sideBySide is how many items a node has at least whose children are made by several goroutines.
const sideBySide = 1 << 14

// split gives n its children: the groups of items that the classifier of the level tells apart.
func (b *builder) split(n *Node, items []item, level, depth int, est bool) error {
	if level == len(b.by) || len(items) == 0 {
		return nil
	}
	c := &b.by[level]
	if c.Needs&classify.AttrSite != 0 && !est {
		est = true
		items = b.estimate(items)
	}
	like := n
	if len(items) != len(n.items) || est != n.est {
		like = nil
	}
	l, d := level+1, 0
	if c.Cardinality == classify.Hierarchy {
		l, d = level, depth+1
	}
	if len(items) == 1 { // as most nodes of a large tree
		ks, err := b.keysOf(level, items[0].t)
		if err != nil {
			return err
		}
		switch ks = b.here(ks, level, depth); len(ks) {
		case 0:
			return b.split(n, items, level+1, 0, est)
		case 1:
			child, err := b.node(b.names[ks[0]], items, level, l, d, est, like)
			if n.Children == nil {
				n.Children = make([]*Node, 0, 1)
			}
			n.Children = append(n.Children, child)
			n.sort()
			return err
		}
	}
	groups, own, _, err := b.groups(items, level, depth)
	if err != nil {
		return err
	}
	first := len(n.Children)
	n.Children = append(n.Children, make([]*Node, len(groups))...)
	child := func(b *builder, i int) (err error) {
		g := &groups[i]
		same := like
		if len(g.items) != len(items) {
			same = nil
		}
		n.Children[first+i], err = b.node(b.names[g.key], g.items, level, l, d, est, same)
		return err
	}
	if len(items) >= sideBySide && len(groups) > 1 && !b.alone {
		err = b.together(len(groups), items, level, child)
	} else {
		for i := range groups {
			if err = child(b, i); err != nil {
				break
			}
		}
	}
	if err != nil {
		return err
	}
	// What ends at an inner node is classified by the next level there.
	if len(own) > 0 {
		if err := b.split(n, own, level+1, 0, est); err != nil {
			return err
		}
	}
	n.sort()
	return nil
}

// together calls child for 0 to n-1 from two goroutines, each with a builder. Classifiers are not asked by both: they
// are asked before.
func (b *builder) together(n int, items []item, level int, child func(b *builder, i int) error) error {
	for l := level; l < len(b.by); l++ {
		for _, it := range items {
			if _, err := b.keysOf(l, it.t); err != nil {
				return err
			}
		}
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := [2]error{}
	for w := range errs {
		c := *b
		c.fits, c.slot, c.room, c.bounds, c.buf = slices.Clip(b.fits), make([]int32, len(b.slot)), nil, nil, nil
		c.alone = true
		wg.Go(func() {
			for errs[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				errs[w] = child(&c, i)
			}
		})
	}
	wg.Wait()
	return cmp.Or(errs[0], errs[1])
}

// keyed are the items of one key; n is how many there will be.
type keyed struct {
	key   int32
	items []item
	n     int32
}

// groups tells items apart by their keys of a level, in the order in which keys are first seen. own are those whose
// path ends at depth, all those of the groups side by side.
func (b *builder) groups(items []item, level, depth int) (groups []keyed, own, all []item, err error) {
	total, ends := 0, 0
	for _, it := range items {
		ks, err := b.keysOf(level, it.t)
		if err != nil {
			return nil, nil, nil, err
		}
		if ks = b.here(ks, level, depth); len(ks) == 0 {
			ends++
		}
		for i, k := range ks {
			if i > 0 && slices.Contains(ks[:i], k) {
				continue
			}
			if b.slot[k] == 0 {
				groups = append(groups, keyed{key: k})
				b.slot[k] = int32(len(groups))
			}
			groups[b.slot[k]-1].n++
			total++
		}
	}
	room := make([]item, total+ends)
	own, room = room[:0:ends], room[ends:]
	all = room
	for i := range groups {
		g := &groups[i]
		g.items, room = room[:0:g.n], room[g.n:]
	}
	for _, it := range items {
		ks, _ := b.keysOf(level, it.t)
		if ks = b.here(ks, level, depth); len(ks) == 0 {
			own = append(own, it)
		}
		for i, k := range ks {
			if i == 0 || !slices.Contains(ks[:i], k) {
				g := &groups[b.slot[k]-1]
				g.items = append(g.items, it)
			}
		}
	}
	for _, g := range groups {
		b.slot[g.key] = 0
	}
	return groups, own, all, nil
}

// here gives the keys that count at a node: of a path that at its depth, or none.
func (b *builder) here(ks []int32, level, depth int) []int32 {
	if b.by[level].Cardinality != classify.Hierarchy {
		return ks
	}
	return ks[min(depth, len(ks)):min(depth+1, len(ks))]
}

// keysOf gives the keys of a tuple at a level; they are asked for once.
func (b *builder) keysOf(at int, t int32) ([]int32, error) {
	l, c := &b.levels[at], &b.by[at]
	if l.of == nil {
		l.of = make([]span, len(b.ts))
		if c.Needs&^classify.AttrType == 0 {
			l.byType = map[uint32]span{}
		} else if c.Needs == classify.AttrSite {
			l.bySite = map[siteSeen]span{}
		} else if c.Needs == classify.AttrBirth {
			l.byAge = map[birthSeen]span{}
		}
	}
	s := l.of[t]
	if s.n == 0 {
		switch {
		case l.byType != nil:
			s = l.byType[b.ts[t].Type]
		case l.bySite != nil:
			s = l.bySite[siteSeenOf(b.w, &b.ts[t])]
		case l.byAge != nil:
			s = l.byAge[birthSeenOf(&b.ts[t])]
		}
		if s.n > 0 {
			l.of[t] = s
		}
	}
	if s.n == 0 {
		ks, err := c.Keys(b.w, &b.ts[t], b.buf[:0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		b.buf = ks
		if len(ks) == 0 {
			ks = append(ks, classify.Others)
		}
		s = span{uint32(len(l.keys)), uint32(len(ks))}
		for _, k := range ks {
			l.keys = append(l.keys, b.number(k))
		}
		l.of[t] = s
		switch {
		case l.byType != nil:
			l.byType[b.ts[t].Type] = s
		case l.bySite != nil:
			l.bySite[siteSeenOf(b.w, &b.ts[t])] = s
		case l.byAge != nil:
			l.byAge[birthSeenOf(&b.ts[t])] = s
		}
	}
	return l.keys[s.at : s.at+s.n], nil
}

func (b *builder) number(k string) int32 {
	n, ok := b.key[k]
	if !ok {
		n = int32(len(b.names))
		b.key[k] = n
		b.names, b.slot = append(b.names, k), append(b.slot, 0)
	}
	return n
}

// count gives the figures of items, of one part or of all (-1).
func (b *builder) count(items []item, est bool, part int) Figure {
	return b.counted(items, est, func(it item) (int32, bool) {
		return it.fit, part < 0 || int(b.ts[it.t].Part) == part
	})
}

// counted gives the figures of the items that which takes, each with the fit that it names.
func (b *builder) counted(items []item, est bool, which func(item) (int32, bool)) Figure {
	var s sumsOf
	for _, it := range items {
		t := &b.ts[it.t]
		fit, ok := which(it)
		switch {
		case !ok:
		case est:
			s.estimate(t, &b.fits[fit])
		default:
			s.exact(t.Objects, t.Bytes)
		}
	}
	return s.figure(est)
}
