package history

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// Histories is the whole of `heapcam histories`: how many objects of each class and site lived after each collection of
// the window (after VEE'10).
type Histories struct {
	Schema      string    `json:"schema"`
	Survived    int       `json:"survived"` // K
	Collections []uint64  `json:"collections"`
	Seconds     []float64 `json:"seconds"` // of each, since the first
	Classes     []History `json:"classes"` // exact, the most bytes at the end first
	Sites       []History `json:"sites"`   // estimated from samples
	// of the collections with a sync point alone; then there are no ages, and sites tell all that lives
	SyncPoints bool `json:"sync_points,omitempty"`
}

// History is one class or site. Its values change after the collections At (places in Histories.Collections) and stay
// in between. Born and Died are objects over the window: of classes those that outlived a collection, as the census of
// each exact collection tells them; of sites those that outlived K.
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
func Make(r *heap.Replay, k int) (*Histories, error) {
	out := &Histories{Schema: "heapcam.histories/1", Survived: k, Collections: []uint64{},
		Seconds: []float64{}, Classes: []History{}, Sites: []History{}}
	h := NewTracker(k)
	by := map[sites.Class]*History{}
	class := map[uint32]sites.Class{}
	of := func(typ uint32) *History {
		c, ok := class[typ]
		if !ok {
			if c = sites.ClassOf(r.Symbols, typ).Folded(); r.Types[uint64(typ)].ID != 0 {
				class[typ] = c
			}
		}
		x := by[c]
		if x == nil {
			x = &History{Class: c.Name}
			by[c] = x
		}
		return x
	}
	known := false
	now := map[*History]heap.Count{}
	err := collection.Each(r, func(c *heap.Collection) bool {
		i := int32(len(out.Collections))
		h.Collection(&r.Cursor, c)
		out.Collections = append(out.Collections, c.GC)
		out.Seconds = append(out.Seconds, h.Times[i]-h.Times[0])
		for _, row := range c.Census {
			x := of(uint32(row.Type))
			x.Born += row.Cells[trace.CensusBornYoung].Objects + row.Cells[trace.CensusBornOld].Objects
			x.Died += row.Cells[trace.CensusDiedYoung].Objects + row.Cells[trace.CensusDiedOld].Objects
		}
		if known = c.Known; !known {
			return true
		}
		clear(now)
		for id, n := range r.State.PerType() {
			if n.Objects > 0 {
				x := of(uint32(id))
				now[x] = heap.Count{Objects: now[x].Objects + n.Objects, Bytes: now[x].Bytes + n.Bytes}
			}
		}
		for _, x := range by {
			n := now[x]
			if m := len(x.At); m == 0 && n.Objects > 0 || m > 0 && (x.Objects[m-1] != n.Objects || x.Bytes[m-1] != n.Bytes) {
				x.At, x.Objects, x.Bytes = append(x.At, i), append(x.Objects, n.Objects), append(x.Bytes, n.Bytes)
			}
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if known && len(h.moved) > 0 {
		gc := out.Collections[len(out.Collections)-1]
		r.State.Each(func(o heap.Object) bool {
			x := of(o.Type)
			x.MeanAge += float64(gc - min(gc, uint64(o.Birth)))
			if len(h.moved) == k && uint64(o.Birth) <= h.moved[0] {
				x.Old++
				x.OldBytes += o.Words * 8
			}
			return true
		})
	}
	var classes []sites.Class
	for c := range by {
		classes = append(classes, c)
	}
	shared := sites.Loaders(r.Symbols, classes)
	for c, x := range by {
		if n := len(x.At); n > 0 {
			x.Loader = shared[c]
			if x.Objects[n-1] > 0 {
				x.MeanAge /= float64(x.Objects[n-1])
			}
			out.Classes = append(out.Classes, *x)
		}
	}
	out.sites(&r.Cursor, h)
	out.sort()
	return out, nil
}

func (out *Histories) sort() {
	for _, s := range [][]History{out.Classes, out.Sites} {
		slices.SortFunc(s, func(a, b History) int {
			return cmp.Or(cmp.Compare(b.Bytes[len(b.Bytes)-1], a.Bytes[len(a.Bytes)-1]), cmp.Compare(a.Class, b.Class),
				cmp.Compare(a.Loader, b.Loader), cmp.Compare(b.Born, a.Born))
		})
	}
}

func (out *Histories) sites(r *heap.Cursor, h *Tracker) {
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
		x := History{Class: k.Class.Name, Loader: shared[k.Class], Site: sites.Stack(r.Symbols, k.Frame, sites.MaxFrames)}
		s.Spread(bytes, samples)
		for i := range n {
			if i == 0 && samples[i] != 0 || i > 0 && (samples[i] != samples[i-1] || bytes[i] != bytes[i-1]) {
				x.At, x.Bytes, x.Samples = append(x.At, int32(i)), append(x.Bytes, uint64(math.Round(max(bytes[i], 0)))), append(
					x.Samples,
					int64(samples[i]),
				)
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

// WriteText prints the first most classes and sites, a line each.
func (out *Histories) WriteText(w io.Writer, most int) {
	row := func(x History) {
		v := make([]float64, len(out.Collections))
		for i, k := 0, 0; i < len(v); i++ {
			if i > 0 {
				v[i] = v[i-1]
			}
			for ; k < len(x.At) && int(x.At[k]) == i; k++ {
				v[i] = float64(x.Bytes[k])
			}
		}
		at := ui.Text("")
		if len(x.Site) > 0 {
			at = ui.Sprintf(" %s", sites.Top(x.Site))
		}
		if out.SyncPoints {
			born, died := fmt.Sprint(x.Born), fmt.Sprint(x.Died)
			if x.Site != nil { // summaries do not tell them
				born, died = "-", "-"
			}
			ui.Fprintf(w, "%-30s %10s %9s %9s  %s%s\n", ui.Spark(v, 30), ui.Bytes(x.Bytes[len(x.Bytes)-1]), born, died,
				sites.WithLoader(x.Class, x.Loader), at)
			return
		}
		ui.Fprintf(w, "%-30s %10s %9d %9d %7.1f %10s  %s%s\n", ui.Spark(v, 30), ui.Bytes(x.Bytes[len(x.Bytes)-1]), x.Born,
			x.Died, x.MeanAge, ui.Bytes(x.OldBytes), sites.WithLoader(x.Class, x.Loader), at)
	}
	for _, part := range []struct {
		name string
		h    []History
	}{{"CLASS (objects born and dead since the recording began)", out.Classes}, {"SITE (samples born and dead)", out.Sites}} {
		if out.SyncPoints {
			ui.Fprintf(w, "%-30s %10s %9s %9s  %s\n", fmt.Sprintf("%d SYNC POINTS", len(out.Collections)), "BYTES", "BORN",
				"DIED", part.name)
		} else {
			ui.Fprintf(w, "%-30s %10s %9s %9s %7s %10s  %s\n", fmt.Sprintf("%d COLLECTIONS", len(out.Collections)), "BYTES", "BORN", "DIED", "AGE", fmt.Sprintf("OLD >= %d", out.Survived), part.name)
		}
		for i, x := range part.h {
			if most > 0 && i == most {
				ui.Fprintf(w, "and %d more\n", len(part.h)-most)
				break
			}
			row(x)
		}
	}
}
