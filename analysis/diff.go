package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/classify/grouping"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// Range is a figure with its bounds; all three are equal if it is exact.
type Range struct {
	Value uint64 `json:"value"`
	Low   uint64 `json:"low"`
	High  uint64 `json:"high"`
}

func (r Range) plus(o Range) Range { return Range{r.Value + o.Value, r.Low + o.Low, r.High + o.High} }

// Change is what happened to a group between two collections. Died were there at the first and not at the second,
// permanent at both, born at the second only.
type Change struct {
	Key      string    `json:"key"`
	Exact    bool      `json:"exact"`
	Objects  Changes   `json:"objects"`
	Bytes    Changes   `json:"bytes"`
	Children []*Change `json:"children,omitempty"`
	// objects at the second of which the identity was lost in between: permanent or born
	Unclear   uint64 `json:"unclear,omitempty"`
	Estimated bool   `json:"estimated,omitempty"`
	// Objects, of both collections together, that are in this group because their callers were drawn (recorded with
	// --sites exact). Callers of what died are drawn among samples that died, and so on.
	Drawn uint64 `json:"callers_drawn,omitempty"`
	// Share of the objects with this innermost frame and drawn callers that is in this group.
	Share float64 `json:"callers_share,omitempty"`
	// garbage at the first collection; null: not known
	DeadBefore *grouping.Dead `json:"dead_before,omitempty"`
	// garbage at the second collection; null: not known
	DeadAfter *grouping.Dead `json:"dead_after,omitempty"`
}

// Changes are the three counts, of objects or of bytes.
type Changes struct {
	Died      Range `json:"died"`
	Permanent Range `json:"permanent"`
	Born      Range `json:"born"`
	Before    Range `json:"before"` // at the first collection; by space, died and permanent
	After     Range `json:"after"`  // at the second
}

// Moment names a collection.
type Moment struct {
	GC    uint64    `json:"gc"`
	JVMGC uint64    `json:"jvm_gc"`
	Time  time.Time `json:"time"`
}

func momentOf(r *heap.Symbols, c *heap.Collection) Moment {
	return Moment{c.GC, c.JVMGC, collection.Wall(r, c.End())}
}

// DiffReport is the whole of `heapcam diff` of one recording.
type DiffReport struct {
	Schema string   `json:"schema"`
	From   Moment   `json:"from"`
	To     Moment   `json:"to"`
	By     []string `json:"by"`
	Where  []string `json:"where,omitempty"`
	Exact  bool     `json:"exact"`
	// Lost are the objects after To of which the identity was lost by full collections in between: they may be
	// permanent or born.
	Lost uint64 `json:"identity_lost"`
	// MayFill says that int[] and java.lang.Object may be fillers of G1, which the figures contain.
	MayFill bool    `json:"may_fill,omitempty"`
	Tree    *Change `json:"tree"`

	bySpace bool
}

// The parts of tuples in a diff: of the first state what was not found in the second, and of the second the rest.
const (
	partDied      = classify.PartFirst
	partPermanent = classify.PartBoth
)

const (
	partBorn = iota + partPermanent + 1
	partUnclear
	partLoose // permanent, but not matched with one object of the first state
	numParts
)

// sizeKey is a diffStratum: what still distinguishes objects when identity is lost.
type sizeKey struct {
	typ          uint32
	length, size uint64
}

// diffStratum bounds what happened to objects of one type and size.
type diffStratum struct {
	gone    float64 // of the first state not matched one by one; loose of them are permanent
	loose   float64 // in the second state, surely there before, but not matched
	unclear float64 // in the second state, there before or not
	size    float64 // bytes of each
}

// Diff compares the states of a recording after collections from and to. r is at its start. Classifiers and filters
// must not look at addresses, which change with each collection. Spaces are kinds of spaces: what died is where it was
// at from, all else where it is at to. Errors are those of At and Group.
func Diff(r *heap.Replay, from, to uint64, by []classify.Classifier, filters []classify.Filter) (*DiffReport, error) {
	d, err := newDiff(by, filters)
	if err != nil {
		return nil, err
	}
	if d.bySpace && to >= heap.MaxMarked {
		return nil, fmt.Errorf("collection %d: a diff by space reaches to collection %d", to, heap.MaxMarked-1)
	}
	var callers sites.Callers
	follow := func(*heap.Collection) { callers.Follow(&r.Cursor) }
	c1, err := collection.AtWatched(r, from, follow)
	if err != nil {
		return nil, err
	}
	f1, err := d.fold(r.View(), c1, c1.GC, to, c1.Flags)
	if err != nil {
		return nil, err
	}
	if d.bySpace {
		for i := range f1 {
			f1[i].Was = uint64(f1[i].Space)
		}
		v := r.View()
		v.MarkSpaces(v.Spaces(c1.Spaces))
	}
	c2 := c1
	if to != from {
		if c2, err = collection.AtWatched(r, to, follow); err != nil {
			return nil, err
		}
	}
	f2, err := d.fold(r.View(), c2, c1.GC, c2.GC, c1.Flags)
	if err != nil {
		return nil, err
	}
	return d.report(r.View(), c1, c2, f1, f2, callers.Frozen())
}

// DiffStates is Diff of two states of one recording that stand side by side; c1 is not the later one. Spaces ask for a
// replay from one to the other: ErrMarks. from is as of DrawCallers.
func DiffStates(
	r1 *heap.View,
	c1 *heap.Collection,
	r2 *heap.View,
	c2 *heap.Collection,
	from *sites.Callers,
	by []classify.Classifier,
	filters []classify.Filter,
) (*DiffReport, error) {
	d, err := newDiff(by, filters)
	if err != nil {
		return nil, err
	}
	if d.bySpace {
		return nil, ErrMarks
	}
	var f1, f2 []heap.Folded
	var err2 error
	var wg sync.WaitGroup
	wg.Go(func() { f2, err2 = d.fold(r2, c2, c1.GC, c2.GC, c1.Flags) })
	f1, err = d.fold(r1, c1, c1.GC, c2.GC, c1.Flags)
	wg.Wait()
	if err = cmp.Or(err, err2); err != nil {
		return nil, err
	}
	return d.report(r2, c1, c2, f1, f2, from)
}

// differ is a diff that is being made.
type differ struct {
	by      []classify.Classifier
	filters []classify.Filter
	attrs   classify.Attr
	ages    []uint64
	bySpace bool
}

func newDiff(by []classify.Classifier, filters []classify.Filter) (*differ, error) {
	a, _ := classify.Needs(by, filters)
	switch {
	case a&classify.AttrAddr != 0:
		return nil, ErrMoves
	case a&classify.AttrRefs != 0:
		return nil, ErrRefs
	}
	return &differ{by: by, filters: filters, attrs: a, ages: classify.Ages(by, filters),
		bySpace: a&classify.AttrSpace != 0}, nil
}

// fold gives the state of r after c, one of the two that are compared, from (with flags) and to. Births are
// distinguished by what they are needed for: who looks at them, and which objects were there at from.
func (d *differ) fold(r *heap.View, c *heap.Collection, from, to, flags uint64) ([]heap.Folded, error) {
	want := wants(d.attrs) | heap.WantLength | heap.WantBirth
	// what is sampled in eden then is in no state yet, though its birth is known: samples tell
	if flags&trace.PauseEdenKept != 0 {
		want |= heap.WantSamples
	}
	var distinct []uint32
	if d.ages != nil && !d.bySpace {
		distinct = append(eras(r, d.ages, from, to), uint32(from))
		slices.Sort(distinct)
	}
	spaces := r.Spaces(c.Spaces)
	fs, err := r.Fold(want, spaces, 1, distinct...)
	if err == nil && d.bySpace {
		fs = foldSpaces(fs, spaces)
	}
	return fs, err
}

// report makes the report. r is positioned after c2, f1 and f2 are the states.
func (d *differ) report(
	r *heap.View,
	c1, c2 *heap.Collection,
	f1, f2 []heap.Folded,
	from *sites.Callers,
) (*DiffReport, error) {
	w, _ := World(r, c2)
	if d.bySpace {
		w.Spaces = w.Spaces[:0]
		for kind := range uint64(trace.SpaceArchive + 1) {
			name := cmp.Or(spaceKinds[kind], classify.UnknownSpace)
			w.Spaces = append(w.Spaces, classify.Space{Name: name, Kind: kind})
		}
	}
	if d.attrs&classify.AttrSite == 0 {
		from = nil
	}
	ts, strata := match(r, f1, f2, c1.GC, from)
	for i := range ts {
		ts[i].GC = c2.GC
		if ts[i].Part == partDied {
			ts[i].GC = c1.GC
		}
	}
	tree, err := grouping.Build(w, ts, d.by, d.filters)
	if err != nil {
		return nil, err
	}
	rep := &DiffReport{Schema: "heapcam.diff/1", From: momentOf(r.Symbols, c1), To: momentOf(r.Symbols, c2),
		Exact: true, MayFill: fills(r.Symbols), bySpace: d.bySpace}
	for _, b := range d.by {
		rep.By = append(rep.By, b.Name)
	}
	for _, f := range d.filters {
		rep.Where = append(rep.Where, f.Name)
	}
	rep.Tree = rep.change(tree, ts, strata)
	rep.Lost = rep.Tree.Unclear
	return rep, nil
}

// ErrMarks says that a diff by space was asked for of two states.
var ErrMarks = notDiff("a diff by space needs a replay")

// ErrMoves says that a diff was asked for by what changes with each collection.
var ErrMoves = notDiff("a diff cannot group by address: objects move with each collection")

// ErrRefs says that a diff or a trend was asked for by what only a reference listing knows.
var ErrRefs = notDiff("references are known after few collections: `heapcam group` and `heapcam dominators` show them")

type notDiff string

func (e notDiff) Error() string { return string(e) }

// change makes the figures of a node.
func (d *DiffReport) change(n *grouping.Node, ts []classify.Tuple, strata map[sizeKey]*diffStratum) *Change {
	parts, was, now := make([]grouping.Figure, numParts), n.Was, n.Now
	copy(parts, n.Parts)
	if n.Parts == nil { // all tuples are of part 0
		parts[partDied] = grouping.Figure{Objects: n.Objects, Bytes: n.Bytes, ObjLow: n.Objects,
			ObjHigh: n.Objects, BytesLow: n.Bytes, BytesHigh: n.Bytes}
		was = parts[partDied]
	}
	var below []int32
	if len(strata) > 0 {
		below = n.Tuples()
	}
	objects, bytes, unclear := unmatchedOf(below, ts, strata)
	ofObjects := func(f *grouping.Figure) Range { return Range{f.Objects, f.ObjLow, f.ObjHigh} }
	ofBytes := func(f *grouping.Figure) Range { return Range{f.Bytes, f.BytesLow, f.BytesHigh} }
	c := &Change{Key: n.Key, Unclear: uint64(unclear), Drawn: n.Drawn, Share: n.Share,
		Objects: d.changes(parts, &was, &now, ofObjects, objects),
		Bytes:   d.changes(parts, &was, &now, ofBytes, bytes)}
	for _, p := range parts {
		c.Estimated = c.Estimated || p.Estimated
	}
	c.Exact = c.Objects.exact() && c.Bytes.exact()
	d.Exact = d.Exact && c.Exact
	for _, x := range n.Children {
		// What may have died where nothing did is all found elsewhere.
		if x := d.change(x, ts, strata); x.Objects != (Changes{}) {
			c.Children = append(c.Children, x)
		}
	}
	slices.SortFunc(c.Children, func(x, y *Change) int {
		return cmp.Or(cmp.Compare(y.moved(), x.moved()), cmp.Compare(x.Key, y.Key))
	})
	return c
}

// unmatched says what the objects of a node that were not matched leave open: how far what died is below what was not
// matched, at most and at least, and how much of what is unclear may be permanent, and must be born.
type unmatched struct{ diedMost, diedLeast, perm, born float64 }

func (u *unmatched) add(o unmatched, size float64) {
	u.diedMost += o.diedMost * size
	u.diedLeast += o.diedLeast * size
	u.perm += o.perm * size
	u.born += o.born * size
}

// unmatchedOf adds up what tuples leave open, in objects and bytes, and how many objects are unclear.
func unmatchedOf(
	below []int32,
	ts []classify.Tuple,
	strata map[sizeKey]*diffStratum,
) (objects, bytes unmatched, unclear float64) {
	mine := map[sizeKey]*diffStratum{} // what of each is below the node
	for _, i := range below {
		t := &ts[i]
		k := sizeKey{t.Type, t.Length, t.Size / 8}
		if strata[k] == nil {
			continue
		}
		m := mine[k]
		if m == nil {
			m = &diffStratum{}
			mine[k] = m
		}
		switch t.Part {
		case partDied:
			m.gone += float64(t.Objects)
		case partUnclear:
			m.unclear += float64(t.Objects)
		}
	}
	for k, m := range mine {
		s := strata[k]
		free := max(0, s.gone-s.loose)
		o := unmatched{
			diedMost:  min(m.gone, s.loose+s.unclear), // of gone that lives on
			diedLeast: max(0, m.gone-free),            // of gone that surely does
			perm:      min(m.unclear, free),           // of unclear that was there
			born:      max(0, m.unclear-free),         // of unclear that was not
		}
		objects.add(o, 1)
		bytes.add(o, s.size)
		unclear += m.unclear
	}
	return objects, bytes, unclear
}

// Bury says how much of each group was garbage at the two collections: in trees of GroupApart with the same classifiers
// and filters, nil if that is not known. Spaces have other names there: by space it is said of all together.
func (d *DiffReport) Bury(before, after *grouping.Node) {
	put := func(tree *grouping.Node, set func(*Change, *grouping.Dead)) {
		if tree == nil {
			return
		}
		at := map[string]*grouping.Dead{}
		key := func(path []string) string { return strings.Join(path, "\x00") }
		tree.Walk(func(path []string, n *grouping.Node) bool {
			if at[key(path)] == nil {
				at[key(path)] = n.Dead
			}
			return true
		})
		var walk func(path []string, c *Change)
		walk = func(path []string, c *Change) {
			x := at[key(path)]
			if x == nil {
				x = &grouping.Dead{}
			}
			if set(c, x); d.bySpace {
				return
			}
			for _, below := range c.Children {
				walk(append(slices.Clip(path), below.Key), below)
			}
		}
		walk(nil, d.Tree)
	}
	put(before, func(c *Change, x *grouping.Dead) { c.DeadBefore = x })
	put(after, func(c *Change, x *grouping.Dead) { c.DeadAfter = x })
}

// changes makes the figures of objects or bytes, which get takes from a part's.
// Before and after are what a grouping of each state says (was and now). Where they are estimates what is permanent
// is less sure than both, so that died and born are what they leave.
func (d *DiffReport) changes(
	parts []grouping.Figure,
	was, now *grouping.Figure,
	get func(*grouping.Figure) Range,
	u unmatched,
) (to Changes) {
	sub := func(x uint64, y float64) uint64 { return x - min(x, uint64(y)) }
	add := func(x uint64, y float64) uint64 { return x + uint64(y) }
	died, matched, loose := get(&parts[partDied]), get(&parts[partPermanent]), get(&parts[partLoose])
	fresh, unsure := get(&parts[partBorn]), get(&parts[partUnclear])
	permanent := matched.plus(loose)
	to.Died = Range{Low: sub(died.Low, u.diedMost), High: sub(died.High, u.diedLeast)}
	to.Permanent = Range{Low: permanent.Low, High: add(permanent.High, u.perm)}
	to.Born = Range{Low: add(fresh.Low, u.born), High: fresh.High + unsure.High}
	to.Before, to.After = get(was), get(now)
	// The value is what is said if as little as possible has happened: what may be permanent is.
	to.Died.Value = min(max(sub(died.Value, u.diedMost), to.Died.Low), to.Died.High)
	to.Permanent.Value = add(permanent.Value, u.perm)
	to.Born.Value = sub(fresh.Value+unsure.Value, u.perm)
	if (was.Estimated || now.Estimated) && u == (unmatched{}) {
		to.settle(died.Value, fresh.Value)
	}
	if d.bySpace { // where what is permanent now is
		to.Before = to.Died.plus(to.Permanent)
	}
	return to
}

// settle lets estimates add up: before = died + permanent, after = permanent + born. Without deaths, or births, there
// are none.
func (c *Changes) settle(died, born uint64) {
	before, after := c.Before.Value, c.After.Value
	p := before - min(before, died)
	if died > 0 && born == 0 || p > after {
		p = min(after, before)
	}
	c.Died.Value, c.Permanent.Value, c.Born.Value = before-p, p, after-p
	for _, r := range [...]*Range{&c.Died, &c.Permanent, &c.Born} {
		r.Low, r.High = min(r.Low, r.Value), max(r.High, r.Value)
	}
}

func (c *Changes) exact() bool {
	return c.Died.Low == c.Died.High && c.Permanent.Low == c.Permanent.High && c.Born.Low == c.Born.High
}

// Net is how many bytes the group grew by.
func (c *Change) Net() int64 { return int64(c.Bytes.After.Value) - int64(c.Bytes.Before.Value) }

// moved is what children are sorted by: growth and shrinkage alike, then what came and went.
func (c *Change) moved() uint64 {
	n := c.Net()
	if n < 0 {
		n = -n
	}
	return uint64(n)<<8 + c.Bytes.Born.Value + c.Bytes.Died.Value
}
