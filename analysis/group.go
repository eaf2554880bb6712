package analysis

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/classify/grouping"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// Grouping is the whole of `heapcam group`.
type Grouping struct {
	Schema  string         `json:"schema"`
	GC      uint64         `json:"gc"`
	JVMGC   uint64         `json:"jvm_gc"`
	Time    time.Time      `json:"time"`
	By      []string       `json:"by"`
	Where   []string       `json:"where,omitempty"`
	Exact   bool           `json:"exact"` // no figure is an estimate
	Objects uint64         `json:"objects"`
	Bytes   uint64         `json:"bytes"`
	Tree    *grouping.Node `json:"tree"`

	Tuples []classify.Tuple `json:"-"`

	callers func(frame, sample uint64) uint64 // classify.World.Callers
}

// World gives what classifiers see of the state of r, which is positioned after c, and the state's spaces.
func World(r *heap.View, c *heap.Collection) (*classify.World, []heap.SpaceAt) {
	spaces := r.Spaces(c.Spaces)
	w := &classify.World{
		GC:      c.GC,
		First:   r.First,
		AtStart: r.JVM.Flags&trace.JVMAtStart != 0,
		Types:   r.Types,
		Loaders: r.Loaders,
		Methods: r.Methods,
		Frames:  r.Frames,
		Threads: r.Threads,
		Time: func(gc uint64) (time.Time, bool) {
			ns, ok := r.Ends[gc]
			return collection.Wall(r.Symbols, ns), ok
		},
	}
	for _, s := range spaces {
		w.Spaces = append(w.Spaces, classify.Space{Name: SpaceName(r.Symbols, s), Kind: s.Kind})
	}
	return w, spaces
}

var spaceKinds = map[uint64]string{
	trace.SpaceEden:          "eden",
	trace.SpaceSurvivor:      "survivor",
	trace.SpaceOld:           "old",
	trace.SpaceHumongous:     "humongous",
	trace.SpaceHumongousCont: "humongous, continued",
	trace.SpaceArchive:       "archive",
}

func SpaceName(r *heap.Symbols, s heap.SpaceAt) string {
	kind := spaceKinds[s.Kind]
	switch {
	case r.JVM.RegionWords > 0:
		return fmt.Sprintf("region %d (%s)", s.Index, kind)
	case s.Kind == trace.SpaceSurvivor:
		return fmt.Sprintf("survivor %d", s.Index)
	}
	return kind
}

// wants translates the properties.
func wants(a classify.Attr) (w heap.Want) {
	for _, p := range []struct {
		a classify.Attr
		w heap.Want
	}{{classify.AttrLength, heap.WantLength}, {classify.AttrBirth, heap.WantBirth},
		{classify.AttrSpace, heap.WantSpace}, {classify.AttrAddr, heap.WantAddr},
		{classify.AttrSite, heap.WantSamples},
		{classify.AttrRefs, heap.WantLabel}} {
		if a&p.a != 0 {
			w |= p.w
		}
	}
	return w
}

// eras gives what distinguishes births, if that is the ages at some collections and r.First; nil if each birth is
// (ages is nil).
func eras(r *heap.View, ages []uint64, at ...uint64) []uint32 {
	if ages == nil {
		return nil
	}
	out := []uint32{uint32(r.First)}
	for _, gc := range at {
		for _, a := range ages {
			if a <= gc {
				out = append(out, uint32(gc-a))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Prove lets w tell what is proven (classify.World.Split).
func Prove(w *classify.World, s *heap.Symbols, known *sites.CoverageFollower) {
	w.FromFew = func(typ uint32) (objects, bytes uint64, places []string) {
		f := known.FromFew(s, typ)
		for _, p := range f.Places {
			places = append(places, p.String())
		}
		return f.Objects, f.Bytes, places
	}
}

// DrawCallers lets w, which is of the state of v, give the objects whose innermost frame alone is known their callers,
// drawn among the samples with that frame: those that live, or without one all in from. It may be nil: none is drawn.
func DrawCallers(w *classify.World, v *heap.View, from *sites.Callers) {
	if from == nil {
		return
	}
	among := sync.OnceValue(func() *sites.Callers {
		return from.Among(v.Symbols, v.LiveSamples().Values())
	})
	w.Callers = func(frame, sample uint64) uint64 { return among().Of(v.Symbols, frame, sample) }
}

// Tuples folds the state of r, which w is of, for who looks at a, grain (classify.Needs) and ages (classify.Ages).
// Addresses in tuples are those of the JVM, in bytes.
func Tuples(
	r *heap.View,
	w *classify.World,
	spaces []heap.SpaceAt,
	a classify.Attr,
	grain uint64,
	ages []uint64,
) ([]classify.Tuple, error) {
	var distinct []uint32
	if a&classify.AttrBirth != 0 {
		distinct = eras(r, ages, w.GC)
	}
	fs, err := r.Fold(wants(a), spaces, max(1, grain/8), distinct...)
	if err != nil {
		return nil, err
	}
	out, widest := make([]classify.Tuple, len(fs)), heap.WidestOf(samplesOf(fs))
	for i, f := range fs {
		out[i] = classify.Tuple{Type: f.Type, Length: f.Length, Size: f.Words * 8, Birth: f.Birth,
			AtLeast: f.AtLeast, Space: f.Space, Refs: f.Label,
			Objects: f.Objects, Bytes: f.Bytes, Sampled: f.Sampled, Frame: f.Frame,
			Thread: f.Thread}
		if a&classify.AttrAddr != 0 {
			out[i].Addr = r.JVM.HeapBase + f.Addr*8
		}
		for _, s := range f.Samples {
			weigh(&out[i], s, widest)
		}
	}
	if a&classify.AttrSite != 0 && w.Callers != nil {
		out = drawn(w, fs, out, widest)
	}
	return out, nil
}

// drawn takes the objects whose callers are drawn (classify.World.Callers) out of the tuples of fs, as tuples of their
// own.
func drawn(w *classify.World, fs []heap.Folded, ts []classify.Tuple, widest heap.Widest) []classify.Tuple {
	for i := range fs {
		if !fs[i].Sampled {
			continue
		}
		var at map[uint64]int // by stack
		for _, s := range fs[i].Samples {
			frame := w.Callers(s.Frame, s.ID)
			if frame == s.Frame {
				continue
			}
			to, ok := at[frame]
			if !ok {
				x := ts[i]
				x.Frame, x.Drawn, x.Objects, x.Bytes = frame, true, 0, 0
				x.WObjects, x.WBytes = stats.Total{}, stats.Total{}
				if at == nil {
					at = map[uint64]int{}
				}
				to = len(ts)
				at[frame], ts = to, append(ts, x)
			}
			count(&ts[to], s.Size, s, widest)
		}
		if at == nil {
			continue
		}
		t := &ts[i]
		bytes := t.Bytes
		for _, x := range at {
			bytes -= min(bytes, ts[x].Bytes)
		}
		t.Objects, t.Bytes, t.WObjects, t.WBytes = 0, 0, stats.Total{}, stats.Total{}
		for _, s := range fs[i].Samples {
			if w.Callers(s.Frame, s.ID) == s.Frame {
				count(t, bytes, s, widest)
				bytes = 0 // all of them count with the first
			}
		}
	}
	return slices.DeleteFunc(ts, func(t classify.Tuple) bool { return t.Objects == 0 })
}

// count adds an object of so many bytes that was sampled.
func count(t *classify.Tuple, bytes uint64, s *heap.Sample, widest heap.Widest) {
	t.Objects++
	t.Bytes += bytes
	weigh(t, s, widest)
}

// weigh adds what a sample of t stands for.
func weigh(t *classify.Tuple, s *heap.Sample, widest heap.Widest) {
	weight, interval := s.Stands()
	missed := widest.Missed(s.Size, interval)
	t.WObjects.Draw(1, weight, missed)
	t.WBytes.Draw(float64(s.Size), weight, missed)
}

// Group groups the state of r, which is positioned after c, by classifiers.
func Group(
	r *heap.View,
	c *heap.Collection,
	w *classify.World,
	spaces []heap.SpaceAt,
	by []classify.Classifier,
	filters []classify.Filter,
) (*Grouping, error) {
	a, grain := classify.Needs(by, filters)
	ts, err := Tuples(r, w, spaces, a, grain, classify.Ages(by, filters))
	if err != nil {
		return nil, err
	}
	if a&classify.AttrSite != 0 {
		ts = w.Split(ts)
	}
	return GroupTuples(r.Symbols, c, w, ts, by, filters)
}

// GroupApart is Group of a state that has the labels of a reference listing (World.Refs): it also says how much of each
// group is garbage (grouping.Node.Dead).
func GroupApart(
	r *heap.View,
	c *heap.Collection,
	w *classify.World,
	spaces []heap.SpaceAt,
	by []classify.Classifier,
	filters []classify.Filter,
) (*Grouping, error) {
	a, grain := classify.Needs(by, filters)
	ts, err := Tuples(r, w, spaces, a|classify.AttrReach, grain, classify.Ages(by, filters))
	if err != nil {
		return nil, err
	}
	if a&classify.AttrSite != 0 {
		ts = w.Split(ts)
	}
	g, err := GroupTuples(r.Symbols, c, w, ts, by, filters)
	if err != nil {
		return nil, err
	}
	dead, err := grouping.Build(w, ts, by, append(slices.Clip(filters), classify.Garbage()))
	if err != nil {
		return nil, err
	}
	g.Tree.Bury(dead)
	return g, nil
}

// GroupTuples is Group of a state that was folded before, for all that by and filters need (Tuples).
func GroupTuples(
	r *heap.Symbols,
	c *heap.Collection,
	w *classify.World,
	ts []classify.Tuple,
	by []classify.Classifier,
	filters []classify.Filter,
) (*Grouping, error) {
	tree, err := grouping.Build(w, ts, by, filters)
	if err != nil {
		return nil, err
	}
	g := newGrouping(r, c, tree, by, filters)
	g.Tree, g.Tuples, g.callers = tree, ts, w.Callers
	tree.Walk(func(_ []string, n *grouping.Node) bool {
		g.Exact = g.Exact && !n.Estimated
		return g.Exact
	})
	return g, nil
}

// Drawn says whether callers of an object were drawn (grouping.Node.Drawn).
func (g *Grouping) Drawn() (any bool) {
	g.Tree.Walk(func(_ []string, n *grouping.Node) bool {
		any = any || n.Drawn > 0
		return !any
	})
	return any
}

// OpenTuples is GroupTuples for who looks at few of the groups: the tree makes them when they are asked for. Tree and
// Tuples of the Grouping are nil.
func OpenTuples(
	r *heap.Symbols,
	c *heap.Collection,
	w *classify.World,
	ts []classify.Tuple,
	by []classify.Classifier,
	filters []classify.Filter,
) (*Grouping, *grouping.Tree, error) {
	t, err := grouping.Begin(w, ts, by, filters)
	if err != nil {
		return nil, nil, err
	}
	g := newGrouping(r, c, t.Root, by, filters)
	g.Exact, err = t.Exact()
	return g, t, err
}

// newGrouping is a grouping but for its tree.
func newGrouping(
	r *heap.Symbols,
	c *heap.Collection,
	root *grouping.Node,
	by []classify.Classifier,
	filters []classify.Filter,
) *Grouping {
	g := &Grouping{Schema: "heapcam.group/1", GC: c.GC, JVMGC: c.JVMGC, Time: collection.Wall(r, c.End()),
		Exact: true, Objects: root.Objects, Bytes: root.Bytes}
	for _, b := range by {
		g.By = append(g.By, b.Name)
	}
	for _, f := range filters {
		g.Where = append(g.Where, f.Name)
	}
	return g
}

// ListedObject is an object of a lossless list.
type ListedObject struct {
	Address string             `json:"address"`
	Class   string             `json:"class"`
	Bytes   uint64             `json:"bytes"`
	Length  uint64             `json:"length,omitempty"`
	Birth   uint64             `json:"birth"`
	AtLeast bool               `json:"at_least,omitempty"`
	Sample  uint64             `json:"sample,omitempty"`
	Site    []sites.StackFrame `json:"site,omitempty"`
	// Drawn says that the innermost frame of the site is exact, and its callers are drawn (Row.Drawn).
	Drawn bool `json:"callers_drawn,omitempty"`
}

// List calls f for each object below a node of a grouping, by address, until it returns false. It is the lossless mode:
// the tree itself keeps no objects.
func (g *Grouping) List(
	r *heap.View,
	n *grouping.Node,
	spaces []heap.SpaceAt,
	by []classify.Classifier,
	filters []classify.Filter,
	f func(ListedObject) bool,
) {
	a, grain := classify.Needs(by, filters)
	words := max(1, grain/8)
	distinct := eras(r, classify.Ages(by, filters), g.GC)
	type key struct {
		t             classify.Tuple
		frame, thread uint64
	}
	// What an object's tuple is keyed by, as Fold keys it.
	keyOf := func(t classify.Tuple) key {
		k := key{t: t, frame: t.Frame, thread: t.Thread}
		k.t.Objects, k.t.Bytes, k.t.WObjects, k.t.WBytes = 0, 0, stats.Total{}, stats.Total{}
		return k
	}
	in := map[key]bool{}
	for _, t := range n.Tuples() {
		in[keyOf(g.Tuples[t])] = true
	}
	space := -1
	r.State.Each(func(o heap.Object) bool {
		t := classify.Tuple{Type: o.Type, Space: -1}
		if a&classify.AttrLength != 0 {
			t.Length, t.Size = o.Length, o.Words*8
		}
		switch {
		case a&classify.AttrBirth != 0:
			t.Birth, t.AtLeast = o.Birth, o.AtLeast
			if distinct != nil {
				t.Birth = heap.Era(o.Birth, distinct)
			}
		case a&classify.AttrSite != 0:
			t.Birth, t.AtLeast = heap.Era(o.Birth, []uint32{uint32(r.First)}), o.AtLeast
		}
		if a&classify.AttrSpace != 0 {
			for space < len(spaces) && (space < 0 || spaces[space].End <= o.Addr) {
				space++
			}
			if space < len(spaces) && spaces[space].Start <= o.Addr {
				t.Space = space
			}
		}
		if a&classify.AttrAddr != 0 {
			t.Addr = r.JVM.HeapBase + o.Addr&^(words-1)*8
		}
		x, frame := r.Sample(o.Sample), uint64(0)
		if x != nil {
			if frame = x.Frame; g.callers != nil {
				frame = g.callers(frame, x.ID)
			}
		}
		if a&classify.AttrRefs != 0 {
			t.Refs = r.Label(o.Addr)
		}
		if a&classify.AttrSite != 0 && x != nil {
			t.Sampled, t.Frame, t.Thread = true, frame, x.Thread
			t.Drawn = frame != x.Frame
		}
		if !in[keyOf(t)] {
			return true
		}
		l := ListedObject{Address: fmt.Sprintf("%#x", r.JVM.HeapBase+o.Addr*8), Class: r.TypeName(o.Type),
			Bytes: o.Words * 8, Length: o.Length, Birth: uint64(o.Birth), AtLeast: o.AtLeast, Sample: o.Sample}
		if x != nil {
			l.Site, l.Drawn = sites.Stack(r.Symbols, frame, sites.MaxFrames), frame != x.Frame
		}
		return f(l)
	})
}
