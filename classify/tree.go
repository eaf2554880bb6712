package classify

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Node is a group. Objects and bytes are those of all objects below it, each once. Where Estimated is set they are estimates and the bounds
// hold the true number with 95 % probability.
type Node struct {
	Key       string  `json:"key"`
	Objects   uint64  `json:"objects"`
	Bytes     uint64  `json:"bytes"`
	Estimated bool    `json:"estimated,omitempty"`
	Samples   uint64  `json:"samples,omitempty"`
	ObjLow    *uint64 `json:"objects_low,omitempty"`
	ObjHigh   *uint64 `json:"objects_high,omitempty"`
	BytesLow  *uint64 `json:"bytes_low,omitempty"`
	BytesHigh *uint64 `json:"bytes_high,omitempty"`
	Children  []*Node `json:"children,omitempty"`

	// Level is the index of the classifier that gave the key. A hierarchy's inner node may have children of its own level and of the next.
	Level int `json:"-"`

	// Parts are the figures of the tuples of each part, if tuples have parts.
	Parts []Figure `json:"-"`

	tuples []int32 // below it
}

// Figure counts; without Estimated the bounds are the figures.
type Figure struct {
	Objects, Bytes      uint64
	Estimated           bool
	Samples             uint64
	ObjLow, ObjHigh     uint64
	BytesLow, BytesHigh uint64
}

// Tuples gives the indexes of the tuples below the node, in the slice that Build was given.
func (n *Node) Tuples() []int32 { return n.tuples }

// MaxNodes bounds a tree.
const MaxNodes = 2_000_000

// ErrTooMany says that a grouping has more nodes than MaxNodes.
var ErrTooMany = fmt.Errorf("the grouping has more than %d nodes: take fewer or coarser classifiers, or a filter", MaxNodes)

// item is a tuple in a node. On estimated levels a tuple counts mo times its (weighted) objects and mb times its bytes; lo and hi bound mo
// and mb of what has no sample.
type item struct {
	t                          int32
	mo, mb                     float64
	moLow, moHi, mbLow, mbHigh float64
}

type builder struct {
	w     *World
	ts    []Tuple
	by    []Classifier
	keys  [][][]string // by level and tuple, nil until asked
	nodes int
	parts uint8 // 0: tuples have none
	buf   []string
}

// Build makes the tree of tuples. The root's key is "heap". Children are sorted by bytes, the largest first.
func Build(w *World, ts []Tuple, by []Classifier, filters []Filter) (*Node, error) {
	b := &builder{w: w, ts: ts, by: by, keys: make([][][]string, len(by))}
	est := false
	var items []item
	for _, f := range filters {
		est = est || f.Needs&AttrSite != 0
	}
	for i := range ts {
		items = append(items, item{t: int32(i), mo: 1, mb: 1})
		if ts[i].Part > 0 {
			b.parts = max(b.parts, ts[i].Part+1)
		}
	}
	if est { // before what is asked for is told from the rest
		items = b.estimate(items)
	}
	for _, f := range filters {
		kept := items[:0]
		for _, it := range items {
			ok, err := f.Keep(w, &ts[it.t])
			if err != nil {
				return nil, err
			}
			if ok {
				kept = append(kept, it)
			}
		}
		items = kept
	}
	n, err := b.node("heap", items, -1, 0, 0, est)
	if n != nil {
		n.clamp()
	}
	return n, err
}

// clamp lets no bound exceed that of the parent.
func (n *Node) clamp() {
	most := func(p *uint64, v uint64) uint64 {
		if p != nil {
			return *p
		}
		return v
	}
	o, b := most(n.ObjHigh, n.Objects), most(n.BytesHigh, n.Bytes)
	for _, c := range n.Children {
		if c.Estimated {
			*c.ObjHigh, *c.BytesHigh = max(c.Objects, min(*c.ObjHigh, o)), max(c.Bytes, min(*c.BytesHigh, b))
		}
		for i := range c.Parts {
			p, of := &c.Parts[i], &n.Parts[i]
			p.ObjHigh, p.BytesHigh = max(p.Objects, min(p.ObjHigh, of.ObjHigh)), max(p.Bytes, min(p.BytesHigh, of.BytesHigh))
		}
		c.clamp()
	}
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
	type stratum struct {
		o, bytes   float64 // all
		uo, ubytes float64 // without a sample
		so, sbytes Total
	}
	strata := map[key]*stratum{}
	at := func(t *Tuple) *stratum {
		k := key{t.Type, b.w.before(t), t.Part}
		s := strata[k]
		if s == nil {
			s = &stratum{}
			strata[k] = s
		}
		return s
	}
	for _, it := range items {
		t := &b.ts[it.t]
		s := at(t)
		s.o += float64(t.Objects)
		s.bytes += float64(t.Bytes)
		if t.Sampled {
			s.so.plus(t.WObjects, 1)
			s.sbytes.plus(t.WBytes, 1)
		} else {
			s.uo += float64(t.Objects)
			s.ubytes += float64(t.Bytes)
		}
	}
	// fit gives the multipliers of samples and of the rest, and the bounds of the latter.
	fit := func(all, rest float64, sampled Total) (f, g, lo, hi float64) {
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
	out := make([]item, len(items))
	for i, it := range items {
		t := &b.ts[it.t]
		s := at(t)
		fo, go_, gol, goh := fit(s.o, s.uo, s.so)
		fb, gb, gbl, gbh := fit(s.bytes, s.ubytes, s.sbytes)
		out[i] = item{t: it.t, mo: fo, mb: fb}
		if !t.Sampled {
			out[i] = item{it.t, go_, gb, gol, goh, gbl, gbh}
		}
	}
	return out
}

// Estimate gives for each tuple how many objects and bytes it stands for, if samples stand for what was not sampled: what a tree whose first
// level looks at sites counts.
func Estimate(w *World, ts []Tuple) (objects, bytes []float64) {
	b := &builder{w: w, ts: ts}
	items := make([]item, len(ts))
	for i := range ts {
		items[i] = item{t: int32(i), mo: 1, mb: 1}
	}
	for _, it := range b.estimate(items) {
		t := &ts[it.t]
		if t.Sampled {
			objects, bytes = append(objects, it.mo*t.WObjects.Sum), append(bytes, it.mb*t.WBytes.Sum)
		} else {
			objects, bytes = append(objects, it.mo*float64(t.Objects)), append(bytes, it.mb*float64(t.Bytes))
		}
	}
	return objects, bytes
}

// NoSite is the key of a tuple without a sample.
func (w *World) NoSite(t *Tuple) string { return w.noSite(t) }

// node makes a node of items whose key the classifier of has given; level is the next one, depth how deep it stands in the hierarchy of that classifier.
func (b *builder) node(key string, items []item, of, level, depth int, est bool) (*Node, error) {
	if b.nodes++; b.nodes > MaxNodes {
		return nil, ErrTooMany
	}
	n := &Node{Key: key, Level: of, tuples: make([]int32, len(items))}
	for i, it := range items {
		n.tuples[i] = it.t
	}
	f := b.count(items, est)
	n.Objects, n.Bytes, n.Estimated, n.Samples = f.Objects, f.Bytes, f.Estimated, f.Samples
	if f.Estimated {
		n.ObjLow, n.ObjHigh, n.BytesLow, n.BytesHigh = &f.ObjLow, &f.ObjHigh, &f.BytesLow, &f.BytesHigh
	}
	if b.parts > 0 {
		by := make([][]item, b.parts)
		for _, it := range items {
			p := b.ts[it.t].Part
			by[p] = append(by[p], it)
		}
		for _, its := range by {
			n.Parts = append(n.Parts, b.count(its, est))
		}
	}
	return n, b.split(n, items, level, depth, est)
}

func (b *builder) split(n *Node, items []item, level, depth int, est bool) error {
	if level == len(b.by) || len(items) == 0 {
		return nil
	}
	c := &b.by[level]
	if c.Needs&AttrSite != 0 && !est {
		est = true
		items = b.estimate(items)
	}
	groups := map[string][]item{}
	var own []item
	for _, it := range items {
		ks, err := b.keysOf(level, it.t)
		if err != nil {
			return err
		}
		switch c.Cardinality {
		case Hierarchy:
			if depth == len(ks) {
				own = append(own, it)
			} else {
				groups[ks[depth]] = append(groups[ks[depth]], it)
			}
		default:
			for i, k := range ks {
				if i == 0 || !slices.Contains(ks[:i], k) {
					groups[k] = append(groups[k], it)
				}
			}
		}
	}
	for k, its := range groups {
		l, d := level+1, 0
		if c.Cardinality == Hierarchy {
			l, d = level, depth+1
		}
		child, err := b.node(k, its, level, l, d, est)
		if err != nil {
			return err
		}
		n.Children = append(n.Children, child)
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

func (n *Node) sort() {
	slices.SortFunc(n.Children, func(x, y *Node) int {
		if x.Bytes != y.Bytes {
			if x.Bytes > y.Bytes {
				return -1
			}
			return 1
		}
		return strings.Compare(x.Key, y.Key)
	})
}

func (b *builder) keysOf(level int, t int32) ([]string, error) {
	if b.keys[level] == nil {
		b.keys[level] = make([][]string, len(b.ts))
	}
	if ks := b.keys[level][t]; ks != nil {
		return ks, nil
	}
	c := &b.by[level]
	ks, err := c.Keys(b.w, &b.ts[t], b.buf[:0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	b.buf = ks
	if len(ks) == 0 {
		ks = []string{Others}
	}
	ks = slices.Clone(ks)
	b.keys[level][t] = ks
	return ks, nil
}

func (b *builder) count(items []item, est bool) (n Figure) {
	if !est {
		for _, it := range items {
			n.Objects += b.ts[it.t].Objects
			n.Bytes += b.ts[it.t].Bytes
		}
		n.ObjLow, n.ObjHigh, n.BytesLow, n.BytesHigh = n.Objects, n.Objects, n.Bytes, n.Bytes
		return n
	}
	var so, sb Total
	var o, by, oLow, oHigh, bLow, bHigh float64
	for _, it := range items {
		t := &b.ts[it.t]
		if t.Sampled {
			so.plus(t.WObjects, it.mo)
			sb.plus(t.WBytes, it.mb)
			n.Samples += t.Objects
			continue
		}
		o += it.mo * float64(t.Objects)
		by += it.mb * float64(t.Bytes)
		oLow += it.moLow * float64(t.Objects)
		oHigh += it.moHi * float64(t.Objects)
		bLow += it.mbLow * float64(t.Bytes)
		bHigh += it.mbHigh * float64(t.Bytes)
	}
	l, h := so.Interval()
	oLow, oHigh = oLow+l, oHigh+h
	l, h = sb.Interval()
	bLow, bHigh = bLow+l, bHigh+h
	round := func(x float64) uint64 { return uint64(math.Round(max(0, min(x, 1<<62)))) }
	n.Objects, n.Bytes = round(o+so.Sum), round(by+sb.Sum)
	n.ObjLow, n.ObjHigh, n.BytesLow, n.BytesHigh = round(oLow), round(oHigh), round(bLow), round(bHigh)
	n.Estimated = n.ObjLow != n.ObjHigh || n.BytesLow != n.BytesHigh || n.ObjLow != n.Objects || n.BytesLow != n.Bytes
	return n
}

// Walk calls f for the node and all below it, parents first, with their keys from the root's children on, until f is false, which leaves out
// what is below.
func (n *Node) Walk(f func(path []string, n *Node) bool) { n.walk(nil, f) }

func (n *Node) walk(path []string, f func([]string, *Node) bool) {
	if !f(path, n) {
		return
	}
	for _, c := range n.Children {
		c.walk(append(path[:len(path):len(path)], c.Key), f)
	}
}

// Find gives the node at a path of keys, nil if there is none.
func (n *Node) Find(path ...string) *Node {
	for _, k := range path {
		i := slices.IndexFunc(n.Children, func(c *Node) bool { return c.Key == k })
		if i < 0 {
			return nil
		}
		n = n.Children[i]
	}
	return n
}

// Fold gives a copy without the nodes below share of the root's bytes (0 to 1); they become one child "(n smaller)" with their sum where
// the level is of one key each. Its tuples are not kept.
func (n *Node) Fold(share float64) *Node { return n.fold(share*float64(n.Bytes), 0) }

func (n *Node) fold(least float64, depth int) *Node {
	c := *n
	c.Children = nil
	small := &Node{}
	count := 0
	for _, x := range n.Children {
		if float64(x.Bytes) < least {
			count++
			small.Objects += x.Objects
			small.Bytes += x.Bytes
			small.Estimated = small.Estimated || x.Estimated
			continue
		}
		c.Children = append(c.Children, x.fold(least, depth+1))
	}
	if count > 0 {
		small.Key = fmt.Sprintf("(%d smaller)", count)
		c.Children = append(c.Children, small)
	}
	return &c
}

// Search gives a copy that keeps the nodes whose key matches, all below them and all above; nil if none does.
func (n *Node) Search(match func(key string) bool) *Node {
	if match(n.Key) {
		return n
	}
	var kept []*Node
	for _, x := range n.Children {
		if m := x.Search(match); m != nil {
			kept = append(kept, m)
		}
	}
	if kept == nil {
		return nil
	}
	c := *n
	c.Children = kept
	return &c
}

// FindPath finds the node at a path of keys joined by sep, which keys may hold as well; nil if there is none. The empty path is the root.
func (n *Node) FindPath(path, sep string) *Node {
	if path == "" {
		return n
	}
	for _, c := range n.Children {
		if c.Key == path {
			return c
		}
		if rest, ok := strings.CutPrefix(path, c.Key+sep); ok {
			if m := c.FindPath(rest, sep); m != nil {
				return m
			}
		}
	}
	return nil
}
