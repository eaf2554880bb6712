package history

import (
	"cmp"
	"maps"
	"slices"
	"time"

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
	// the last collection whose heap state is known, 0 if there is none, its time, and that of the first collection
	Last uint64    `json:"last_known"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// of the collections with a sync point alone; then there are no ages, and sites count all live objects
	SyncPoints bool `json:"sync_points,omitempty"`
	// collections, such as full ones, of which no births and deaths are recorded. There only the change of a class's
	// objects counts: born and died of classes are at least so many
	Uncounted int `json:"uncounted_collections"`
}

// History is one class or site. Its values change after the collections At (places in HeapHistory.Collections) and stay
// in between. Values of sites are estimates of each time at which a sample of their class appeared or
// died, and of the last
// one. Born and Died are those that outlived a collection: of classes objects, from the census of each exact
// collection, and of others from the change of their number, which is the least; of sites samples.
type History struct {
	Class   string             `json:"class"`
	Loader  string             `json:"loader,omitempty"`
	Site    []sites.StackFrame `json:"site,omitempty"`
	At      []int32            `json:"at"`
	Objects []uint64           `json:"objects,omitempty"` // of classes
	Bytes   []uint64           `json:"bytes"`
	Samples []int64            `json:"samples,omitempty"` // of sites: that live
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
	classes := classHistoryBuilder{r: r, class: map[uint32]sites.Class{}, by: map[sites.Class]*History{},
		now: map[*History]heap.Count{}}
	at := newSiteHistories(r)
	var moved moves
	end, known := uint64(0), int32(-1) // known is the place of the newest collection whose state is known
	err := collection.Each(r, func(c *heap.Collection) bool {
		i := int32(len(out.Collections))
		first := i == 0
		if first {
			end = c.Start + c.Dur
			out.From = collection.Wall(r.Symbols, end)
		}
		out.Collections = append(out.Collections, c.GC)
		seconds := float64(c.Start+c.Dur)/1e9 - float64(end)/1e9
		if !first {
			seconds = max(seconds, out.Seconds[i-1])
		}
		out.Seconds = append(out.Seconds, seconds)
		moved.collection(c, k)
		at.collection(c.Known)
		if !c.Known {
			return true
		}
		out.Last, out.To = c.GC, collection.Wall(r.Symbols, c.Start+c.Dur)
		if gap := known >= 0 && i > known+1; !gap && (known < 0 || c.Flags&trace.PauseExact != 0) {
			classes.census(c)
			classes.state(i, true)
		} else {
			out.Uncounted += int(i - known)
			classes.state(i, false)
		}
		known = i
		at.state(i)
		return true
	})
	if err != nil {
		return nil, err
	}
	n := len(out.Collections)
	if n > 0 && out.Last == out.Collections[n-1] {
		at.end(int32(n-1), out.Last, moved.before(k))
		if len(moved) > 0 {
			classes.ages(out.Last, moved.before(k))
		}
	}
	out.Classes = append(out.Classes, classes.all()...)
	out.Sites = append(out.Sites, at.all()...)
	out.sort()
	return out, nil
}

// moves are the numbers of the newest collections that moved objects.
type moves []uint64

func (m *moves) collection(c *heap.Collection, k int) {
	switch c.Kind {
	case trace.PauseYoung, trace.PauseMixed, trace.PauseFull, trace.PauseUnknown:
		if len(*m) == k {
			*m = slices.Delete(*m, 0, 1)
		}
		*m = append(*m, c.GC)
	}
}

// before gives the collection up to which objects are born that have survived k; 0 if there is none.
func (m moves) before(k int) uint64 {
	if len(m) < k {
		return 0
	}
	return m[0]
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

// state takes in the objects after collection i. counted: the census says what was born and died since the state
// before; else the change of each class counts.
func (x *classHistoryBuilder) state(i int32, counted bool) {
	clear(x.now)
	for id, n := range x.r.State.PerType() {
		if n.Objects > 0 {
			h := x.of(uint32(id))
			x.now[h] = heap.Count{Objects: x.now[h].Objects + n.Objects, Bytes: x.now[h].Bytes + n.Bytes}
		}
	}
	for _, h := range x.by {
		n, m := x.now[h], len(h.At)
		changed, before := n.Objects > 0, uint64(0)
		if m > 0 {
			before = h.Objects[m-1]
			changed = h.Objects[m-1] != n.Objects || h.Bytes[m-1] != n.Bytes
		}
		if !counted {
			h.Born += n.Objects - min(n.Objects, before)
			h.Died += before - min(n.Objects, before)
		}
		if changed {
			h.At, h.Objects, h.Bytes = append(h.At, i), append(h.Objects, n.Objects), append(h.Bytes, n.Bytes)
		}
	}
}

// ages takes in the ages of what lives after gc, the last collection; what was born up to old has survived.
func (x *classHistoryBuilder) ages(gc, old uint64) {
	x.r.State.Each(func(o heap.Object) bool {
		h := x.of(o.Type)
		h.MeanAge += float64(gc - min(gc, uint64(o.Birth)))
		if uint64(o.Birth) <= old {
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
