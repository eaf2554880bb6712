package retention

import (
	"cmp"
	"errors"
	"slices"

	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/heap/reflisting"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/references"
)

// Reach says what a reference listing knows of an object of the heap after its collection.
type Reach uint8

// Reaches. Soft and final references keep an object alive, weak and phantom ones do not. Freed: the object was in the
// heap after the collection, but not any more when the JVM was stopped.
const (
	Live Reach = iota
	Weak
	Unreached
	Freed
)

// maxListings bounds the listings that Reaches knows of.
const maxListings = 1 << 16

// Reaches finds the reference listings of a recording by their collections. Not safe for concurrent use.
type Reaches struct {
	of    reflisting.Sources
	whole []reflisting.About // the newest one of each collection, ascending
	last  *Liveness
}

// NewReaches finds the whole reference listings of a recording. Errors: those of reflisting.Find.
func NewReaches(of reflisting.Sources) (*Reaches, error) {
	all, err := reflisting.Find(of.Heads())
	if err != nil {
		return nil, err
	}
	r := &Reaches{of: of}
	for _, a := range all {
		if !a.Whole || a.Refused != "" || len(r.whole) == maxListings {
			continue
		}
		if n := len(r.whole); n > 0 && r.whole[n-1].GC == a.GC {
			r.whole[n-1] = a
		} else if n == 0 || r.whole[n-1].GC < a.GC {
			r.whole = append(r.whole, a)
		}
	}
	return r, nil
}

// GCs gives the collections after which there is a whole listing, ascending.
func (r *Reaches) GCs() []uint64 {
	out := make([]uint64, len(r.whole))
	for i := range r.whole {
		out[i] = r.whole[i].GC
	}
	return out
}

// After reads the listing that was taken after collection gc and before the next one, nil if there is none or if it
// cannot be read. Of several it is the newest. The newest result is kept. Errors: those of the source.
func (r *Reaches) After(gc uint64) (*Liveness, error) {
	i, ok := slices.BinarySearchFunc(r.whole, gc, func(a reflisting.About, gc uint64) int {
		return cmp.Compare(a.GC, gc)
	})
	if !ok {
		return nil, nil
	}
	if r.last != nil && r.last.number == r.whole[i].Number {
		return r.last, nil
	}
	l, _, err := reflisting.Read(r.of.Parts(), r.whole[i].Number)
	switch {
	case errors.Is(err, references.ErrIncomplete), errors.Is(err, references.ErrCorrupt):
		return nil, nil
	case err != nil:
		return nil, err
	}
	x, err := newLiveness(l)
	if err != nil { // it contradicts itself: verify says so
		return nil, nil
	}
	x.GC, x.Time, x.number = gc, r.whole[i].Time, r.whole[i].Number
	r.last = x
	return x, nil
}

// Liveness says of each object of the heap after a collection whether something keeps it alive. The JVM was stopped for
// that after the collection GC, at Time, ns of the stream.
type Liveness struct {
	GC, Time uint64
	Missing  []string // what the listing left out, in words for people

	number  uint64
	samples []trace.RefSample
	addr    []uint32
	typ     []uint32 // id
	words   []uint32 // size; 0: what fills a hole
	level   []graph.Level
}

// newLiveness follows the references of a listing, which it takes over.
func newLiveness(l *references.Listing) (*Liveness, error) {
	level, err := graph.Levels(l)
	if err != nil {
		return nil, err
	}
	x := &Liveness{Missing: l.Missing, samples: l.Samples, addr: l.Addr, typ: make([]uint32, len(l.Addr)),
		words: l.Words, level: level}
	for i, c := range l.Code {
		if x.typ[i] = l.Shapes[c].Type; l.Shapes[c].Kind == references.Filler {
			x.words[i] = 0
		}
	}
	return x, nil
}

// Complete says whether all roots and references are there. Then what is not Live is garbage that was not collected
// yet. Else an unreached object may be alive, and nothing counts as dead.
func (l *Liveness) Complete() bool { return len(l.Missing) == 0 }

// Of gives the reach of the object at a word from the heap base, of the type typ, in the heap after collection GC.
func (l *Liveness) Of(word uint64, typ uint32) Reach {
	if word > references.MaxWord {
		return Freed
	}
	i, ok := slices.BinarySearch(l.addr, uint32(word))
	if !ok || l.typ[i] != typ {
		return Freed
	}
	return reaches[l.level[i]]
}

// Ends says of a live object whether a cleaner of the JDK keeps it, whose own object is dead: both will be freed with
// that.
func (l *Liveness) Ends(word uint64, typ uint32) bool {
	if l.Of(word, typ) != Live {
		return false
	}
	i, _ := slices.BinarySearch(l.addr, uint32(word))
	return l.level[i] == graph.Ending
}

var reaches = [...]Reach{graph.Kept: Live, graph.Weakly: Weak, graph.Unreached: Unreached, graph.Ending: Live}

// Placed is a sampled object with its word from the heap base.
type Placed struct {
	Word   uint64
	Sample *heap.Sample
}

// PlacedIn gives the sampled objects of a state, by address.
func PlacedIn(v *heap.View) []Placed {
	out := []Placed{}
	v.EachSample(func(word uint64, s *heap.Sample) { out = append(out, Placed{word, s}) })
	return out
}

// Placed gives the sampled objects as the listing itself says where they are: those of live, by id, that are there. It
// needs no state of the heap. Of a listing of an older probe it gives none.
func (l *Liveness) Placed(live *heap.Live) (out []Placed) {
	for _, x := range l.samples {
		if s := live.Get(x.ID); s != nil {
			out = append(out, Placed{x.Word, s})
		}
	}
	slices.SortFunc(out, func(a, b Placed) int { return cmp.Compare(a.Word, b.Word) })
	return out
}

// Sum counts samples, and the objects and bytes that these stand for.
type Sum struct {
	Samples        int
	Objects, Bytes float64
}

// Reached is a Sum for each reach. What was freed counts as unreached.
type Reached struct{ Live, Weak, Unreached Sum }

// Sampled adds up the samples of v, the state after collection GC, for which want is true.
func (l *Liveness) Sampled(v *heap.View, want func(*heap.Sample) bool) (r Reached) {
	v.EachSample(func(word uint64, s *heap.Sample) {
		if !want(s) {
			return
		}
		to := &r.Unreached
		switch l.Of(word, uint32(s.Type)) {
		case Live:
			to = &r.Live
		case Weak:
			to = &r.Weak
		}
		to.Samples++
		to.Objects += s.Weight
		to.Bytes += s.Weight * float64(s.Size)
	})
	return r
}
