package sites

import (
	"math"
	"slices"

	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/heap"
)

// State is what the sites of a state are estimated from.
type State struct {
	Symbols *heap.Symbols
	Samples []*heap.Sample              // that live
	Types   []heap.Count                // all that lives, by type
	Lost    bool                        // samples were: what has no known site may be of any
	Before  func(typ uint32) heap.Count // what may be older than the recording, at most; nil: nothing
	FromFew func(typ uint32) FromFew    // what is proven; nil: nothing
	Callers *Callers                    // of objects whose innermost frame alone is known; nil: not known
}

// fits gives those of the types that have samples, and what remains of each class that may be older than the recording.
// samples are those of s in the order of ByID.
func (s *State) fits(samples []*heap.Sample) (fits map[uint64]room, before map[Class]heap.Count) {
	type sum struct {
		n, size        uint64
		objects, bytes stats.Total
	}
	by := map[uint64]*sum{}
	for _, x := range samples {
		t := by[x.Type]
		if t == nil {
			t = &sum{}
			by[x.Type] = t
		}
		t.n++
		t.size += x.Size
		weight, _ := x.Stands()
		t.objects.Add(1, weight)
		t.bytes.Add(float64(x.Size), weight)
	}
	fits, before = map[uint64]room{}, map[Class]heap.Count{}
	for typ, t := range by {
		var all heap.Count
		if typ < uint64(len(s.Types)) {
			all = s.Types[typ]
		}
		var f room
		f.objects, f.bytes = Fit(all, t.n, t.size, &t.objects, &t.bytes)
		fits[typ] = f
	}
	if s.Before == nil {
		return fits, before
	}
	for id, all := range s.Types {
		older := s.Before(uint32(id))
		if all.Objects == 0 || older == (heap.Count{}) {
			continue
		}
		t := by[uint64(id)]
		if t == nil {
			t = &sum{}
		}
		f := fits[uint64(id)]
		c := ClassOf(s.Symbols, uint32(id)).Folded()
		b := before[c]
		before[c] = heap.Count{
			Objects: b.Objects + left(all.Objects, t.n, older.Objects, f.objects*(t.objects.Sum-float64(t.n))),
			Bytes:   b.Bytes + left(all.Bytes, t.size, older.Bytes, f.bytes*(t.bytes.Sum-float64(t.size)))}
	}
	return fits, before
}

// Fit gives stats.Total.Fit of a type: of all that there is n objects and size bytes are samples, which stand for so
// many objects and bytes. If there is less room for bytes, that holds for objects, too: the samples are too many, as of
// a thread whose allocation buffers collections take away half full (the JVM draws such a thread more often). The
// reverse does not hold: one sample of a small array stands for as many objects as hundreds of large ones, and says
// little.
func Fit(all heap.Count, n, size uint64, stands, standBytes *stats.Total) (objects, bytes float64) {
	unsampled, rest := float64(all.Objects)-float64(n), float64(all.Bytes)-float64(size)
	objects = stands.Fit(float64(n), unsampled)
	unknown := max(0, unsampled-objects*(stands.Sum-float64(n)))
	bytes = standBytes.Fit(float64(size), rest-min(rest, stats.LeastObject*unknown))
	return min(objects, bytes), bytes
}

// left is what remains of what may be older than the recording: samples stand for the rest first.
func left(all, sampled, older uint64, known float64) uint64 {
	unsampled := all - min(all, sampled)
	older = min(older, unsampled)
	beyond := max(0, known-float64(unsampled-older))
	return older - min(older, uint64(math.Round(min(beyond, 1<<62))))
}

// tallies sums samples by site.
func (s *State) tallies(live []*heap.Sample, fits map[uint64]room) map[Key]*Tally {
	out := map[Key]*Tally{}
	class, widest := map[uint64]Class{}, heap.WidestOf(slices.Values(live))
	for _, x := range live {
		c, ok := class[x.Type]
		if !ok {
			c = ClassOf(s.Symbols, uint32(x.Type)).Folded()
			class[x.Type] = c
		}
		k := Key{s.Callers.Of(s.Symbols, x.Frame, x.ID), c}
		t := out[k]
		if t == nil {
			t = &Tally{}
			out[k] = t
		}
		t.add(x, fits[x.Type], widest)
		if k.Frame != x.Frame {
			t.drawn.Objects++
			t.drawn.Bytes += x.Size
		}
	}
	return out
}

// Tallies gives what lives by site.
func (s *State) Tallies() map[Key]*Tally {
	samples := slices.Collect(ByID(slices.Values(s.Samples)))
	fits, _ := s.fits(samples)
	return s.tallies(samples, fits)
}

// Rows gives what lives by site: the sites with the most bytes first, then what has none.
func (s *State) Rows() []Row {
	_, rows := s.All()
	return rows
}

// All gives what Tallies and Rows give.
func (s *State) All() (map[Key]*Tally, []Row) {
	samples := slices.Collect(ByID(slices.Values(s.Samples)))
	fits, before := s.fits(samples)
	by := s.tallies(samples, fits)
	out := rows(s.Symbols, by, ByClass(s.Symbols, s.Types), before, s.fromFew())
	if s.Lost {
		widen(out)
	}
	return by, out
}

// widen lets each site have all that has no known site in its class.
func widen(out []Row) {
	type key struct{ class, loader string }
	unknown := map[key]heap.Count{}
	for i := range out {
		if r := &out[i]; r.Child != "" || r.Proven {
			n := unknown[key{r.Class, r.Loader}]
			unknown[key{r.Class, r.Loader}] = heap.Count{Objects: n.Objects + r.Objects, Bytes: n.Bytes + r.Bytes}
		}
	}
	for i := range out {
		if r := &out[i]; r.Child == "" && !r.Proven {
			n := unknown[key{r.Class, r.Loader}]
			r.ObjectsHigh = max(r.ObjectsHigh, r.Objects+n.Objects)
			r.BytesHigh = max(r.BytesHigh, r.Bytes+n.Bytes)
		}
	}
}
