package classify

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/heapcam/heapcam/analysis/stats"
)

// item is a tuple in a node, and what it counts there: the number of its fit in the builder.
type item struct{ t, fit int32 }

// fit says what a tuple counts on estimated levels: mo times its (weighted) objects and mb times its bytes; the others bound mo and mb of what
// has no sample.
type fit struct {
	mo, mb, moLow, moHi, mbLow, mbHigh float64

	of ceiling // of what is sampled
}

// ceiling is what there is of a class, which the bounds of its sites can not exceed. class tells ceilings apart; 0: it is not known.
type ceiling struct {
	class          int32
	objects, bytes uint64
}

// builder makes a tree. Keys are numbers for it, so that a node's items are told apart by counting (as a counting sort does).
type builder struct {
	w      *World
	ts     []Tuple
	by     []Classifier
	levels []level
	fits   []fit
	names  []string // by key
	key    map[string]int32
	nodes  *atomic.Int64
	parts  uint8 // 0: tuples have none
	buf    []string
	slot   []int32 // by key: 1 + its place among the groups of the node at hand, 0 between nodes
	room   []Node  // for nodes to come, in one piece, as they are many
	bounds []uint64
	alone  bool // one of several: it asks no others
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

func (t *Tuple) birthSeen() birthSeen { return birthSeen{t.GC, t.Birth, t.AtLeast} }

// siteSeen is what a classifier that needs AttrSite and nothing else can tell of a tuple.
type siteSeen struct {
	frame, thread          uint64
	sampled, before, exact bool
}

func (w *World) siteSeen(t *Tuple) siteSeen {
	return siteSeen{t.Frame, t.Thread, t.Sampled, w.before(t), t.WObjects.Sum <= float64(t.Objects)}
}

// span is keys[at : at+n] of a level; n is 0 until asked.
type span struct{ at, n uint32 }

func newBuilder(w *World, ts []Tuple, by []Classifier) *builder {
	b := &builder{w: w, ts: ts, by: by, levels: make([]level, len(by)), fits: []fit{{mo: 1, mb: 1}}, key: map[string]int32{}, nodes: &atomic.Int64{}}
	for i := range ts {
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
func Build(w *World, ts []Tuple, by []Classifier, filters []Filter) (*Node, error) {
	b := newBuilder(w, ts, by)
	items, est, err := b.kept(filters)
	if err != nil {
		return nil, err
	}
	n, err := b.node("heap", items, -1, 0, 0, est, nil)
	if n != nil {
		n.clamp()
	}
	return n, err
}

// kept gives what filters leave, and whether it is counted as an estimate.
func (b *builder) kept(filters []Filter) (items []item, est bool, err error) {
	est = slices.ContainsFunc(filters, func(f Filter) bool { return f.Needs&AttrSite != 0 })
	items = b.all()
	if est { // before what is asked for is told from the rest
		items = b.estimate(items)
	}
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

// estimate gives items the multipliers with which samples stand for what was not sampled. Strata are types, and within them what stood when
// the window began and what came later: within each the samples' weights are scaled down if they exceed what is there, and what they leave
// is spread over what has no sample.
func (b *builder) estimate(items []item) []item {
	type key struct {
		typ    uint32
		before bool
		part   uint8
	}
	var list []stratum
	strata := map[key]int32{}
	in := make([]int32, len(items)) // the stratum of each
	for i, it := range items {
		t := &b.ts[it.t]
		k := key{t.Type, b.w.before(t), t.Part}
		at, ok := strata[k]
		if !ok {
			at = int32(len(list))
			strata[k] = at
			list = append(list, stratum{})
		}
		in[i] = at
		list[at].add(t)
	}
	ceilings := b.ceilings(items, in, list)
	for i := range list {
		list[i].fit = int32(len(b.fits))
		sampled, rest := list[i].fits()
		sampled.of = ceilings[i]
		b.fits = append(b.fits, sampled, rest)
	}
	out := make([]item, len(items))
	for i, it := range items {
		out[i] = item{it.t, list[in[i]].fit}
		if !b.ts[it.t].Sampled {
			out[i].fit++
		}
	}
	return out
}

// ceilings gives for each stratum what there is of its class, as `histogram --sites` counts it: types of one name and loader are one class.
func (b *builder) ceilings(items []item, in []int32, strata []stratum) []ceiling {
	type key struct {
		name   string
		loader uint64
		part   uint8
	}
	number := map[key]int32{}
	of, done := make([]int32, len(strata)), make([]bool, len(strata))
	var sums []ceiling
	for i, it := range items {
		at := in[i]
		if done[at] {
			continue
		}
		done[at] = true
		t := &b.ts[it.t]
		k := key{b.w.TypeName(t.Type), b.w.Types[uint64(t.Type)].Loader, t.Part}
		n, ok := number[k]
		if !ok {
			n = int32(len(sums))
			number[k] = n
			sums = append(sums, ceiling{class: n + 1})
		}
		of[at] = n
		sums[n].objects += uint64(strata[at].o)
		sums[n].bytes += uint64(strata[at].bytes)
	}
	out := make([]ceiling, len(strata))
	for i, n := range of {
		out[i] = sums[n]
	}
	return out
}

// stratum is what samples stand for one another in.
type stratum struct {
	o, bytes   float64 // all
	uo, ubytes float64 // without a sample
	so, sbytes stats.Total
	fit        int32 // of what is sampled; of the rest the next
}

func (s *stratum) add(t *Tuple) {
	if t.Sampled {
		s.sample(&SampledSum{t.Objects, t.Bytes, t.WObjects, t.WBytes})
		return
	}
	s.o += float64(t.Objects)
	s.bytes += float64(t.Bytes)
	s.uo += float64(t.Objects)
	s.ubytes += float64(t.Bytes)
}

func (s *stratum) sample(x *SampledSum) {
	s.o += float64(x.Objects)
	s.bytes += float64(x.Bytes)
	s.so.Plus(x.WObjects, 1)
	s.sbytes.Plus(x.WBytes, 1)
}

// fits gives the multipliers of what is sampled, and of the rest.
func (s *stratum) fits() (sampled, rest fit) {
	fo, g, gLow, gHigh := multipliers(s.o, s.uo, s.so)
	fb, h, hLow, hHigh := multipliers(s.bytes, s.ubytes, s.sbytes)
	return fit{mo: fo, mb: fb}, fit{mo: g, mb: h, moLow: gLow, moHi: gHigh, mbLow: hLow, mbHigh: hHigh}
}

// multipliers gives those of samples and of the rest, and the bounds of the latter.
func multipliers(all, rest float64, sampled stats.Total) (f, g, lo, hi float64) {
	f = 1
	if rest == 0 || sampled.Sum > all {
		if sampled.Sum == 0 {
			return 0, 1, 1, 1
		}
		f = all / sampled.Sum
	}
	if rest == 0 {
		return f, 0, 0, 0
	}
	l, h := sampled.Interval()
	return f, max(0, all-f*sampled.Sum) / rest, max(0, all-h) / rest, max(0, all-l*f) / rest
}

// Estimate gives for each tuple how many objects and bytes it stands for, if samples stand for what was not sampled: what a tree whose first
// level looks at sites counts.
func Estimate(w *World, ts []Tuple) (objects, bytes []float64) {
	b := newBuilder(w, ts, nil)
	for _, it := range b.estimate(b.all()) {
		t, f := &ts[it.t], &b.fits[it.fit]
		if t.Sampled {
			objects, bytes = append(objects, f.mo*t.WObjects.Sum), append(bytes, f.mb*t.WBytes.Sum)
		} else {
			objects, bytes = append(objects, f.mo*float64(t.Objects)), append(bytes, f.mb*float64(t.Bytes))
		}
	}
	return objects, bytes
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

// node makes a node of items whose key the classifier of has given; level is the next one, depth how deep it stands in the hierarchy of that classifier.
// like, unless nil, is a node of the same items, counted alike.
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
	for p := range int(b.parts) {
		n.Parts = append(n.Parts, b.count(items, est, p))
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
	if c.Needs&AttrSite != 0 && !est {
		est = true
		items = b.estimate(items)
	}
	like := n
	if len(items) != len(n.items) || est != n.est {
		like = nil
	}
	l, d := level+1, 0
	if c.Cardinality == Hierarchy {
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

// together calls child for 0 to n-1 from two goroutines, each with a builder. Classifiers are not asked by both: they are asked before.
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

// groups tells items apart by their keys of a level, in the order in which keys are first seen. own are those whose path ends at depth, all
// those of the groups side by side.
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
	if b.by[level].Cardinality != Hierarchy {
		return ks
	}
	return ks[min(depth, len(ks)):min(depth+1, len(ks))]
}

// keysOf gives the keys of a tuple at a level; they are asked for once.
func (b *builder) keysOf(at int, t int32) ([]int32, error) {
	l, c := &b.levels[at], &b.by[at]
	if l.of == nil {
		l.of = make([]span, len(b.ts))
		if c.Needs&^attrType == 0 {
			l.byType = map[uint32]span{}
		} else if c.Needs == AttrSite {
			l.bySite = map[siteSeen]span{}
		} else if c.Needs == AttrBirth {
			l.byAge = map[birthSeen]span{}
		}
	}
	s := l.of[t]
	if s.n == 0 {
		switch {
		case l.byType != nil:
			s = l.byType[b.ts[t].Type]
		case l.bySite != nil:
			s = l.bySite[b.w.siteSeen(&b.ts[t])]
		case l.byAge != nil:
			s = l.byAge[b.ts[t].birthSeen()]
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
			ks = append(ks, Others)
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
			l.bySite[b.w.siteSeen(&b.ts[t])] = s
		case l.byAge != nil:
			l.byAge[b.ts[t].birthSeen()] = s
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
	var s sumsOf
	for _, it := range items {
		t := &b.ts[it.t]
		switch {
		case part >= 0 && int(t.Part) != part:
		case est:
			s.estimate(t, &b.fits[it.fit])
		default:
			s.exact(t.Objects, t.Bytes)
		}
	}
	return s.figure(est)
}

// sumsOf adds tuples up: exactly, or what they stand for.
type sumsOf struct {
	n                               Figure
	so, sb                          stats.Total // as they count
	weightedO, weightedB            stats.Total // as they were drawn
	sampledBytes                    uint64
	o, by, oLow, oHigh, bLow, bHigh float64
	most                            ceilingSum
}

// ceilingSum adds up those of different classes. The zero value is empty.
type ceilingSum struct {
	ceiling // their sum; class is that of the newest
	seen    map[int32]bool
	unknown bool
}

func (c *ceilingSum) add(x ceiling) {
	if x.class == c.class && x.class != 0 {
		return
	}
	if c.unknown = c.unknown || x.class == 0; c.unknown || c.seen[x.class] {
		return
	}
	if c.class != 0 || c.seen != nil {
		if c.seen == nil {
			c.seen = map[int32]bool{c.class: true}
		}
		c.seen[x.class] = true
	}
	c.ceiling = ceiling{x.class, c.objects + x.objects, c.bytes + x.bytes}
}

// get gives what there is of all of them.
func (c *ceilingSum) get() (objects, bytes uint64) {
	if c.unknown {
		return 1 << 62, 1 << 62
	}
	return c.objects, c.bytes
}

func (s *sumsOf) exact(objects, bytes uint64) {
	s.n.Objects += objects
	s.n.Bytes += bytes
}

func (s *sumsOf) estimate(t *Tuple, f *fit) {
	if t.Sampled {
		s.sampled(&SampledSum{t.Objects, t.Bytes, t.WObjects, t.WBytes}, f)
		return
	}
	s.rest(t.Objects, t.Bytes, f)
}

func (s *sumsOf) sampled(x *SampledSum, f *fit) {
	s.so.Plus(x.WObjects, f.mo)
	s.sb.Plus(x.WBytes, f.mb)
	s.weightedO.Plus(x.WObjects, 1)
	s.weightedB.Plus(x.WBytes, 1)
	s.n.Samples += x.Objects
	s.sampledBytes += x.Bytes
	s.most.add(f.of)
}

// rest adds what has no sample.
func (s *sumsOf) rest(objects, bytes uint64, f *fit) {
	s.o += f.mo * float64(objects)
	s.by += f.mb * float64(bytes)
	s.oLow += f.moLow * float64(objects)
	s.oHigh += f.moHi * float64(objects)
	s.bLow += f.mbLow * float64(bytes)
	s.bHigh += f.mbHigh * float64(bytes)
}

// figure gives the sum.
func (s *sumsOf) figure(est bool) Figure {
	n := s.n
	if !est {
		n.ObjLow, n.ObjHigh, n.BytesLow, n.BytesHigh = n.Objects, n.Objects, n.Bytes, n.Bytes
		return n
	}
	n.Objects, n.Bytes = rounded(s.o+s.so.Sum), rounded(s.by+s.sb.Sum)
	objects, bytes := s.most.get()
	low, high := s.weightedO.Bounds(s.n.Samples, objects)
	n.ObjLow, n.ObjHigh = around(n.Objects, s.oLow+float64(low), s.oHigh+float64(high))
	low, high = s.weightedB.Bounds(s.sampledBytes, bytes)
	n.BytesLow, n.BytesHigh = around(n.Bytes, s.bLow+float64(low), s.bHigh+float64(high))
	n.Estimated = s.uncertain() || n.ObjLow != n.ObjHigh || n.BytesLow != n.BytesHigh
	return n
}

// uncertain says whether samples stand for what was not sampled. That they are estimates is said even where their class leaves no room for another figure.
func (s *sumsOf) uncertain() bool { return s.weightedO.Variance > 0 || s.weightedB.Variance > 0 }

// around gives bounds as whole numbers with the figure between them: where weights are more than there is, the figure may be less than their interval.
func around(figure uint64, low, high float64) (uint64, uint64) {
	return min(figure, rounded(low)), max(figure, rounded(high))
}
