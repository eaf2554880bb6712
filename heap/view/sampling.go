package view

import (
	"cmp"
	"slices"
	"sync"

	"github.com/heapcam/heapcam/heap/samples"
	"github.com/heapcam/heapcam/heap/state"
)

// Sampling walks over the sampled objects of states of one recording by kinds, which it numbers: what they have in
// common. All states have the same View.First and the same Lives, which grow no more.
type Sampling struct {
	mu     sync.Mutex // of all below
	kinds  []SampledKind
	bases  []SampledBase
	places []SampledPlace
	table  sampledTable // of kinds
	base   map[SampledBase]int32
	place  map[SampledPlace]int32
	lives  []sampled // in the order of ids; nil until asked for
}

// SampledKind is what sampled objects have in common: numbers of a base and of a place.
type SampledKind = struct{ Base, Place int32 }

// SampledBase is what is known of an object without a sample, too. Birth is View.First, or one more for those born
// later.
type SampledBase struct {
	Type, Birth uint32
	AtLeast     bool
}

// SampledPlace is where objects were allocated.
type SampledPlace struct{ Frame, Thread uint64 }

// sampled is a sample as it counts. There are many, and no pointers in them.
type sampled struct {
	from, to       uint64
	weight         float64
	size, interval uint64
	kind           int32
}

// Kinds gives all kinds, bases and places so far, by number. They are only read.
func (x *Sampling) Kinds() ([]SampledKind, []SampledBase, []SampledPlace) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.kinds, x.bases, x.places
}

// Fold is v.Fold by sites (WantSamples) that gives only what has no sample, and calls f for each sampled object with
// its kind, the bytes that it takes, those that its sample says, the sample's weight, and how many objects may have
// been missed (samples.Widest): those of one kind in the order in which Fold gives them, kinds in the order in which
// Fold first has them.
func (x *Sampling) Fold(
	v *View,
	f func(kind int32, bytes, size uint64, weight, missed float64),
) (rest []Folded, err error) {
	if v.born == nil {
		fs, err := v.Fold(WantSamples, nil, 1)
		x.mu.Lock()
		defer x.mu.Unlock()
		widest := samples.WidestOf(v.Live.Values())
		for i := range fs {
			d := &fs[i]
			if !d.Sampled {
				rest = append(rest, *d)
				continue
			}
			k, bytes := x.kindOf(SampledBase{d.Type, d.Birth, d.AtLeast}, SampledPlace{d.Frame, d.Thread}), d.Bytes
			for _, s := range d.Samples {
				weight, interval := s.Stands()
				f(k, bytes, s.Size, weight, widest.Missed(s.Size, interval))
				bytes = 0 // all of them count with the first
			}
		}
		return rest, err
	}
	all := x.all(v)
	kinds, bases, _ := x.Kinds()
	have := make([]cell, len(bases))
	var intervals samples.Intervals
	for i := range all {
		if s := &all[i]; s.from <= v.GC && s.to > v.GC {
			intervals.Add(s.interval)
		}
	}
	widest := intervals.Widest()
	for i := range all {
		if s := &all[i]; s.from <= v.GC && s.to > v.GC {
			f(s.kind, s.size, s.size, s.weight, widest.Missed(s.size, s.interval))
			n := &have[kinds[s.kind].Base]
			n.objects++
			n.words += s.size / 8
		}
	}
	left := v.siteCounts()
	for i, n := range have {
		if n.objects > 0 {
			c := left.at(uint64(bases[i].Type)<<32 | uint64(bases[i].Birth))
			c.objects -= n.objects
			c.words -= n.words
		}
	}
	return left.folded(nil), nil
}

// Warm makes what Fold of states of counts needs, once.
func (x *Sampling) Warm(v *View) { x.all(v) }

// all gives the samples of v's Lives.
func (x *Sampling) all(v *View) []sampled {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.lives != nil {
		return x.lives
	}
	l := v.lives
	l.Mu.RLock()
	defer l.Mu.RUnlock()
	order := make([]int32, len(l.All))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(l.All[a].Sample.ID, l.All[b].Sample.ID) })
	x.lives = make([]sampled, len(order))
	for i, n := range order {
		a := &l.All[n]
		s := sampled{from: a.From, to: a.To, size: a.Sample.Size}
		s.weight, s.interval = a.Sample.Stands()
		if s.to == 0 {
			s.to = ^uint64(0)
		}
		s.kind = x.kindOf(SampledBase{Type: uint32(a.Sample.Type), Birth: era(a.Birth, uint32(v.First))},
			SampledPlace{a.Sample.Frame, a.Sample.Thread})
		x.lives[i] = s
	}
	return x.lives
}

func (x *Sampling) kindOf(b SampledBase, p SampledPlace) int32 {
	k := foldSampled{foldKey{group: b.Type, birth: b.Birth}, p.Frame, p.Thread}
	if b.AtLeast {
		k.birth |= state.AtLeastMark
	}
	i := x.table.number(k)
	if int(i) < len(x.kinds) {
		return i
	}
	if x.base == nil {
		x.base, x.place = map[SampledBase]int32{}, map[SampledPlace]int32{}
	}
	base, ok := x.base[b]
	if !ok {
		base = int32(len(x.bases))
		x.base[b], x.bases = base, append(x.bases, b)
	}
	place, ok := x.place[p]
	if !ok {
		place = int32(len(x.places))
		x.place[p], x.places = place, append(x.places, p)
	}
	x.kinds = append(x.kinds, SampledKind{base, place})
	return i
}
