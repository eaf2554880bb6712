package history

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// HeapHistory is the whole of `heapcam history`: how many objects of each class and site lived after each collection of
// the window (after VEE'10).
type HeapHistory struct {
	Schema      string    `json:"schema"`
	Survived    int       `json:"survived"` // K
	Collections []uint64  `json:"collections"`
	Seconds     []float64 `json:"seconds"` // of each, since the first
	Classes     []History `json:"classes"` // exact, the most bytes at the end first
	Sites       []History `json:"sites"`   // estimated from samples
	// of the collections with a sync point alone; then there are no ages, and sites count all live objects
	SyncPoints bool `json:"sync_points,omitempty"`
}

// History is one class or site. Its values change after the collections At (places in HeapHistory.Collections) and stay
// in between. Born and Died are objects over the window: of classes those that outlived a collection, in the census of
// each exact collection; of sites those that outlived K.
type History struct {
	Class   string             `json:"class"`
	Loader  string             `json:"loader,omitempty"`
	Site    []sites.StackFrame `json:"site,omitempty"`
	At      []int32            `json:"at"`
	Objects []uint64           `json:"objects,omitempty"` // of classes
	Bytes   []uint64           `json:"bytes"`             // of sites: of what has survived K collections
	Samples []int64            `json:"samples,omitempty"` // the same as samples
	Born    uint64             `json:"born"`
	Died    uint64             `json:"died"`
	// collections, of what lives at the end; at least, where ages are bounds
	MeanAge float64 `json:"mean_age"`
	// of what lives at the end, those that have survived K collections
	Old      uint64 `json:"survived_objects"`
	OldBytes uint64 `json:"survived_bytes"`
}

// Make replays all of r and gives the histories of all classes and sites, with what survived k collections. Of a class
// with loaders or hidden classes of one name there is one history for each loader.
func Make(r *heap.Replay, k int) (*HeapHistory, error) {
	out := &HeapHistory{Schema: "heapcam.history/1", Survived: k, Collections: []uint64{},
		Seconds: []float64{}, Classes: []History{}, Sites: []History{}}
	h := NewTracker(k)
	classes := classHistoryBuilder{r: r, class: map[uint32]sites.Class{}, by: map[sites.Class]*History{},
		now: map[*History]heap.Count{}}
	known := false
	err := collection.Each(r, func(c *heap.Collection) bool {
		i := int32(len(out.Collections))
		h.Collection(&r.Cursor, c)
		out.Collections = append(out.Collections, c.GC)
		out.Seconds = append(out.Seconds, h.Times[i]-h.Times[0])
		classes.census(c)
		if known = c.Known; known {
			classes.state(i)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if known && len(h.moved) > 0 {
		classes.ages(out.Collections[len(out.Collections)-1], h)
	}
	out.Classes = append(out.Classes, classes.all()...)
	out.sites(&r.Cursor, h)
	out.sort()
	return out, nil
}

// classHistoryBuilder makes the histories of classes.
type classHistoryBuilder struct {
	r     *heap.Replay
	class map[uint32]sites.Class // by type
	by    map[sites.Class]*History
	now   map[*History]heap.Count
}

func (x *classHistoryBuilder) of(typ uint32) *History {
	c, ok := x.class[typ]
	if !ok {
		if c = sites.ClassOf(x.r.Symbols, typ).Folded(); x.r.Types[uint64(typ)].ID != 0 {
			x.class[typ] = c
		}
	}
	h := x.by[c]
	if h == nil {
		h = &History{Class: c.Name}
		x.by[c] = h
	}
	return h
}

// census takes in what was born and died up to c.
func (x *classHistoryBuilder) census(c *heap.Collection) {
	for _, row := range c.Census {
		h := x.of(uint32(row.Type))
		h.Born += row.Cells[trace.CensusBornYoung].Objects + row.Cells[trace.CensusBornOld].Objects
		h.Died += row.Cells[trace.CensusDiedYoung].Objects + row.Cells[trace.CensusDiedOld].Objects
	}
}

// state takes in the objects after collection i.
func (x *classHistoryBuilder) state(i int32) {
	clear(x.now)
	for id, n := range x.r.State.PerType() {
		if n.Objects > 0 {
			h := x.of(uint32(id))
			x.now[h] = heap.Count{Objects: x.now[h].Objects + n.Objects, Bytes: x.now[h].Bytes + n.Bytes}
		}
	}
	for _, h := range x.by {
		n, m := x.now[h], len(h.At)
		changed := n.Objects > 0
		if m > 0 {
			changed = h.Objects[m-1] != n.Objects || h.Bytes[m-1] != n.Bytes
		}
		if changed {
			h.At, h.Objects, h.Bytes = append(h.At, i), append(h.Objects, n.Objects), append(h.Bytes, n.Bytes)
		}
	}
}

// ages takes in the ages of what lives after gc, the last collection.
func (x *classHistoryBuilder) ages(gc uint64, t *Tracker) {
	x.r.State.Each(func(o heap.Object) bool {
		h := x.of(o.Type)
		h.MeanAge += float64(gc - min(gc, uint64(o.Birth)))
		if len(t.moved) == t.k && uint64(o.Birth) <= t.moved[0] {
			h.Old++
			h.OldBytes += o.Words * 8
		}
		return true
	})
}

// all gives the histories of the classes of which there were objects.
func (x *classHistoryBuilder) all() (out []History) {
	shared := sites.Loaders(x.r.Symbols, slices.Collect(maps.Keys(x.by)))
	for c, h := range x.by {
		if n := len(h.At); n > 0 {
			h.Loader = shared[c]
			if h.Objects[n-1] > 0 {
				h.MeanAge /= float64(h.Objects[n-1])
			}
			out = append(out, *h)
		}
	}
	return out
}

func (out *HeapHistory) sort() {
	for _, s := range [][]History{out.Classes, out.Sites} {
		slices.SortFunc(s, func(a, b History) int {
			return cmp.Or(cmp.Compare(b.Bytes[len(b.Bytes)-1], a.Bytes[len(a.Bytes)-1]), cmp.Compare(a.Class, b.Class),
				cmp.Compare(a.Loader, b.Loader), cmp.Compare(b.Born, a.Born),
				cmp.Compare(sites.JoinStack(a.Site), sites.JoinStack(b.Site)), slices.Compare(a.At, b.At),
				slices.Compare(a.Bytes, b.Bytes))
		})
	}
}

func (out *HeapHistory) sites(r *heap.Cursor, h *Tracker) {
	n := len(h.Times)
	bytes, samples := make([]float64, n), make([]float64, n)
	var classes []sites.Class
	for k := range h.Sites {
		classes = append(classes, k.Class)
	}
	shared := sites.Loaders(r.Symbols, classes)
	type age struct{ sum, weight, bytes float64 }
	ages := map[sites.Key]*age{}
	for s := range sites.ByID(maps.Values(r.Live)) {
		if _, young := h.young[s.ID]; young {
			continue
		}
		k := h.Key(r.Symbols, s)
		a := ages[k]
		if a == nil {
			a = &age{}
			ages[k] = a
		}
		gc := out.Collections[n-1]
		a.sum += s.Weight * float64(gc-min(gc, s.Birth))
		a.weight += s.Weight
		a.bytes += s.Weight * float64(s.Size)
	}
	for k, s := range h.Sites {
		if s.Born == 0 {
			continue
		}
		x := History{Class: k.Class.Name, Loader: shared[k.Class],
			Site: sites.Stack(r.Symbols, k.Frame, sites.MaxFrames)}
		s.Spread(bytes, samples)
		for i := range n {
			if i == 0 && samples[i] != 0 || i > 0 && (samples[i] != samples[i-1] || bytes[i] != bytes[i-1]) {
				x.At, x.Samples = append(x.At, int32(i)), append(x.Samples, int64(samples[i]))
				x.Bytes = append(x.Bytes, uint64(math.Round(max(bytes[i], 0))))
			}
		}
		if len(x.At) == 0 {
			continue
		}
		x.Born, x.Died = uint64(s.Born), uint64(s.died)
		if a := ages[k]; a != nil {
			x.MeanAge, x.Old, x.OldBytes = a.sum/a.weight, uint64(math.Round(a.weight)), uint64(math.Round(a.bytes))
		}
		out.Sites = append(out.Sites, x)
	}
}
