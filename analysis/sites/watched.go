package sites

import (
	"cmp"
	"maps"
	"math"
	"slices"

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
		c, ok := a.class[s.Type]
		if !ok {
			if c = ClassOf(r, uint32(s.Type)).Folded(); r.Types[s.Type].ID != 0 {
				a.class[s.Type] = c
			}
		}
		k := Key{s.Frame, c}
		t := a.by[k]
		if t == nil {
			t = &Tally{}
			a.by[k] = t
		}
		t.add(s, unbounded)
		a.all.add(s, unbounded)
	}
}

// Bytes is what was allocated in all, estimated.
func (a *Allocated) Bytes() uint64 { return round(a.all.bytes.Sum) }

// Rows gives what was allocated by site, the most bytes first; at most n.
func (a *Allocated) Rows(r *heap.Symbols, n int) []Row { return Estimated(r, a.by, n) }

// Watched gives what live samples stand for by site, where objects have no addresses and no class is counted: the most
// bytes first; at most n.
func Watched(r *heap.Symbols, live map[uint64]*heap.Sample, n int) []Row {
	s := State{Symbols: r, Samples: slices.Collect(maps.Values(live))}
	by := map[uint64]room{}
	for _, x := range s.Samples {
		by[x.Type] = unbounded
	}
	return Estimated(r, s.tallies(by), n)
}

// Estimated renders tallies of classes that are not counted: nothing bounds the estimates but their own samples.
func Estimated(r *heap.Symbols, by map[Key]*Tally, n int) []Row {
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
		rows = append(rows, row)
	}
	return rows
}

func round(x float64) uint64 { return uint64(math.Round(min(x, 1<<62))) }
