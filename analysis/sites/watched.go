package sites

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/heap"
)

// unbounded is the room of samples whose class is not counted: each counts all that it stands for.
var unbounded = room{1, 1}

// Allocated sums all samples of a recording by site. Make one with NewAllocated.
type Allocated struct {
	by    map[Key]*Tally
	class map[uint64]Class
	all   Tally
}

// NewAllocated makes sums of nothing.
func NewAllocated() *Allocated { return &Allocated{by: map[Key]*Tally{}, class: map[uint64]Class{}} }

// Add takes in samples.
func (a *Allocated) Add(r *heap.Symbols, samples []*heap.Sample) {
	for _, s := range samples {
		k := Key{s.Frame, classOf(r, a.class, s.Type)}
		t := a.by[k]
		if t == nil {
			t = &Tally{}
			a.by[k] = t
		}
		t.add(s, unbounded, heap.Widest{})
		a.all.add(s, unbounded, heap.Widest{})
	}
}

// Bytes is what was allocated in all, estimated.
func (a *Allocated) Bytes() uint64 { return round(a.all.bytes.Sum) }

// Rows gives what was allocated by site, the most bytes first; at most n.
func (a *Allocated) Rows(r *heap.Symbols, n int) []Row { return estimated(r, a.by, nil, n) }

// Watched sums live samples by site, where objects have no addresses and no class is counted. Make one with NewWatched.
type Watched struct {
	// heaviest are the largest objects and bytes that a watched sample of a site stood for, whether it lived or not:
	// the live samples of a site may all be light ones, and heavy ones may have been missed.
	heaviest map[Key]*[2]float64
	class    map[uint64]Class
}

// NewWatched makes sums of nothing.
func NewWatched() *Watched {
	return &Watched{heaviest: map[Key]*[2]float64{}, class: map[uint64]Class{}}
}

// Add takes in samples that are watched from now on.
func (w *Watched) Add(r *heap.Symbols, samples []*heap.Sample) {
	for _, s := range samples {
		k := Key{s.Frame, classOf(r, w.class, s.Type)}
		h := w.heaviest[k]
		if h == nil {
			h = &[2]float64{}
			w.heaviest[k] = h
		}
		h[0], h[1] = max(h[0], s.Weight), max(h[1], s.Weight*float64(s.Size))
	}
}

// Rows gives what the live samples stand for, the most bytes first; at most n. No figure is above most, the bytes that
// can live: few samples, each of which stands for much, may add up to more than the heap has.
func (w *Watched) Rows(r *heap.Symbols, live *heap.Live, most uint64, n int) []Row {
	s, samples := State{Symbols: r}, slices.Collect(ByID(live.Values()))
	fits := map[uint64]room{}
	for _, x := range samples {
		fits[x.Type] = unbounded
	}
	rows := estimated(r, s.tallies(samples, fits), w.heaviest, n)
	for i := range rows {
		row := &rows[i]
		row.Bytes, row.BytesLow, row.BytesHigh = min(row.Bytes, most), min(row.BytesLow, most), min(row.BytesHigh, most)
	}
	return rows
}

// classOf gives the class of a type, and keeps it in known.
func classOf(r *heap.Symbols, known map[uint64]Class, typ uint64) Class {
	c, ok := known[typ]
	if !ok {
		if c = ClassOf(r, uint32(typ)).Folded(); r.Types[typ].ID != 0 {
			known[typ] = c
		}
	}
	return c
}

// estimated renders tallies of classes that are not counted: nothing bounds the estimates but their own samples.
// heaviest are what samples may have stood for that were missed; none: nothing.
func estimated(r *heap.Symbols, by map[Key]*Tally, heaviest map[Key]*[2]float64, n int) []Row {
	keys := slices.SortedFunc(maps.Keys(by), func(a, b Key) int {
		return cmp.Or(cmp.Compare(by[b].bytes.Sum, by[a].bytes.Sum), cmp.Compare(a.Class.Name, b.Class.Name),
			cmp.Compare(a.Class.Loader, b.Class.Loader), cmp.Compare(a.Frame, b.Frame))
	})
	classes := make([]Class, 0, len(keys))
	for _, k := range keys {
		classes = append(classes, k.Class)
	}
	shared := Loaders(r, classes)
	rows := make([]Row, 0, min(n, len(keys)))
	for _, k := range keys[:min(n, len(keys))] {
		t := by[k]
		row := Row{Class: k.Class.Name, Loader: shared[k.Class], Site: Stack(r, k.Frame, MaxFrames), Samples: t.n,
			ExactBytes: t.sampled, Objects: round(t.objects.Sum), Bytes: round(t.bytes.Sum)}
		row.ObjectsLow, row.ObjectsHigh = t.objects.Bounds(t.objects.Sum, t.n, math.MaxInt64)
		row.BytesLow, row.BytesHigh = t.bytes.Bounds(t.bytes.Sum, t.sampled, math.MaxInt64)
		if h := heaviest[k]; h != nil {
			row.ObjectsHigh += round(stats.NoneDrawn * h[0])
			row.BytesHigh += round(stats.NoneDrawn * h[1])
		}
		rows = append(rows, row)
	}
	return rows
}

func round(x float64) uint64 { return uint64(math.Round(min(x, 1<<62))) }
