package analysis

import (
	"iter"
	"math"
	"slices"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/heap/samples"
)

// foldSpaces makes kinds of spaces of spaces and regions: Space is the kind then.
func foldSpaces(fs []heap.Folded, spaces []heap.SpaceAt) []heap.Folded {
	type key struct {
		typ           uint32
		length, words uint64
		birth         uint32
		atLeast       bool
		space         int
		was           uint64
		sampled       bool
		frame, thread uint64
	}
	at := map[key]int{}
	var out []heap.Folded
	for _, f := range fs {
		kind := 0
		if f.Space >= 0 {
			kind = int(spaces[f.Space].Kind & 7)
		}
		f.Space = kind
		k := key{f.Type, f.Length, f.Words, f.Birth, f.AtLeast, kind, f.Was, f.Sampled, f.Frame, f.Thread}
		i, ok := at[k]
		if !ok {
			at[k] = len(out)
			out = append(out, f)
			continue
		}
		out[i].Objects += f.Objects
		out[i].Bytes += f.Bytes
		out[i].Samples = append(out[i].Samples, f.Samples...)
	}
	return out
}

// samplePlaces says where samples are in a state that was folded.
type samplePlaces struct {
	first uint64
	dense []int32 // 1 + place, by id from first on
	far   map[uint64]int32
}

// placesOf puts ids, which are mostly one after the other, into a slice unless that would be much larger than they are
// many.
func placesOf(fs []heap.Folded) *samplePlaces {
	p := &samplePlaces{first: math.MaxUint64}
	n, last := uint64(0), uint64(0)
	for i := range fs {
		for _, s := range fs[i].Samples {
			n++
			p.first, last = min(p.first, s.ID), max(last, s.ID)
		}
	}
	if n > 0 && last-p.first < 16*n+1024 {
		p.dense = make([]int32, last-p.first+1)
	} else {
		p.far = make(map[uint64]int32, n)
	}
	for i := range fs {
		for _, s := range fs[i].Samples {
			if p.dense != nil {
				p.dense[s.ID-p.first] = int32(i) + 1
			} else {
				p.far[s.ID] = int32(i) + 1
			}
		}
	}
	return p
}

// of gives the place of a sample, -1 if it is not there.
func (p *samplePlaces) of(id uint64) int32 {
	if p.dense == nil {
		return p.far[id] - 1
	}
	if at := id - p.first; at < uint64(len(p.dense)) {
		return p.dense[at] - 1
	}
	return -1
}

// match takes the states apart. What was born up to from and lives in the second is permanent, whatever its place; of
// each diffStratum that leaves what died, exactly unless identity was lost. Callers are drawn from callers, if any.
func match(
	r *heap.View,
	f1, f2 []heap.Folded,
	from uint64,
	callers *sites.Callers,
) ([]classify.Tuple, map[sizeKey]*diffStratum) {
	m := newMatching(f1)
	m.widest = heap.WidestOf(samplesOf(f1, f2))
	m.relisted = r.Relisted > from
	if callers != nil {
		m.draw(r, f2, callers)
	}
	m.out = make([]classify.Tuple, 0, len(f2)+len(f2)/8)
	for i := range f2 {
		f := &f2[i]
		switch {
		case f.Sampled:
			m.sampled(f, from)
		case uint64(f.Birth) <= from:
			m.old(f, f.Objects, nil)
		case f.AtLeast:
			m.stratum(f).unclear += float64(f.Objects)
			m.add(f, partUnclear, f.Objects, f.Samples)
		default:
			m.add(f, partBorn, f.Objects, f.Samples)
		}
	}
	m.died(r)
	for k, s := range m.strata {
		if s.loose == 0 && s.unclear == 0 { // all were matched
			delete(m.strata, k)
		}
	}
	return m.out, m.strata
}

// matching is a match that is being made.
type matching struct {
	f1     []heap.Folded
	there  *samplePlaces      // in f1
	was    map[matchKey]int32 // places in f1 of what has no sample
	left   []uint64           // objects of each of f1 that were not found in the second; the last is of nothing
	strata map[sizeKey]*diffStratum
	out    []classify.Tuple
	// identities were lost between the states
	relisted bool

	symbols *heap.Symbols
	widest  heap.Widest              // of the samples of both states
	callers [numParts]*sites.Callers // by part, for objects whose innermost frame alone is known; nil: none is drawn
}

// draw prepares that callers are drawn for objects of both states: for what died among samples that died, and so on. A
// caller all of whose objects died has no others then. r is the second state, f2.
func (m *matching) draw(r *heap.View, f2 []heap.Folded, from *sites.Callers) {
	m.symbols = r.Symbols
	var was, now, died, kept, born []*heap.Sample
	for i := range m.f1 {
		for _, s := range m.f1[i].Samples {
			if was = append(was, s); r.Sample(s.ID) == nil {
				died = append(died, s)
			}
		}
	}
	for i := range f2 {
		for _, s := range f2[i].Samples {
			if now = append(now, s); m.there.of(s.ID) >= 0 {
				kept = append(kept, s)
			} else {
				born = append(born, s)
			}
		}
	}
	first := from.Among(r.Symbols, slices.Values(was))
	second := from.Among(r.Symbols, slices.Values(now))
	m.callers = [numParts]*sites.Callers{
		partDied:      first.Among(r.Symbols, slices.Values(died)),
		partPermanent: second.Among(r.Symbols, slices.Values(kept)),
		partLoose:     second.Among(r.Symbols, slices.Values(kept)),
		partBorn:      second.Among(r.Symbols, slices.Values(born)),
		partUnclear:   second,
	}
	if m.relisted { // what has lost its site may live
		m.callers[partDied] = first
	}
}

// matchKey is what an object without a sample keeps from one state to the other.
type matchKey struct {
	sizeKey
	birth   uint32
	atLeast bool
	was     uint64
}

func matchKeyOf(f *heap.Folded) matchKey {
	return matchKey{sizeKey{f.Type, f.Length, f.Words}, f.Birth, f.AtLeast, f.Was}
}

func newMatching(f1 []heap.Folded) *matching {
	m := &matching{f1: f1, there: placesOf(f1), was: map[matchKey]int32{}, left: make([]uint64, len(f1)+1),
		strata: map[sizeKey]*diffStratum{}}
	for i := range f1 {
		if !f1[i].Sampled {
			m.was[matchKeyOf(&f1[i])] = int32(i)
		}
		m.left[i] = f1[i].Objects
	}
	return m
}

// samplesOf gives the samples of states.
func samplesOf(states ...[]heap.Folded) iter.Seq[*heap.Sample] {
	return func(yield func(*heap.Sample) bool) {
		for _, fs := range states {
			for i := range fs {
				for _, s := range fs[i].Samples {
					if !yield(s) {
						return
					}
				}
			}
		}
	}
}

func (m *matching) stratum(f *heap.Folded) *diffStratum {
	k := sizeKey{f.Type, f.Length, f.Words}
	s := m.strata[k]
	if s == nil {
		s = &diffStratum{size: float64(f.Words * 8)}
		m.strata[k] = s
	}
	return s
}

// add gives some objects of f to a part. Those with drawn callers are tuples of their own.
func (m *matching) add(f *heap.Folded, part uint8, objects uint64, samples []*heap.Sample) {
	t := classify.Tuple{Type: f.Type, Length: f.Length, Size: f.Words * 8, Birth: f.Birth, AtLeast: f.AtLeast,
		Space: f.Space, Sampled: f.Sampled, Frame: f.Frame, Thread: f.Thread, Part: part}
	at := len(m.out)
	m.out = append(m.out, t)
	var by map[uint64]int // by stack
	for _, s := range samples {
		to, frame := at, m.callers[part].Of(m.symbols, s.Frame, s.ID)
		if frame != s.Frame {
			var ok bool
			if to, ok = by[frame]; !ok {
				if by == nil {
					by = map[uint64]int{}
				}
				to = len(m.out)
				by[frame], t.Frame, t.Drawn = to, frame, true
				m.out = append(m.out, t)
			}
		}
		count(&m.out[to], f.Words*8, s, m.widest)
		objects -= min(objects, 1)
	}
	own := &m.out[at]
	own.Objects += objects
	own.Bytes += objects * f.Words * 8
	if own.Objects == 0 {
		m.out = slices.Delete(m.out, at, at+1)
	}
}

// sampled takes in objects of the second state that are sampled: their identity is never lost. An object that got its
// site between the states, by a repeated listing or from its hash, is as one without a sample.
func (m *matching) sampled(f *heap.Folded, from uint64) {
	var old, fresh, late []*heap.Sample
	for _, s := range f.Samples {
		if i := m.there.of(s.ID); i >= 0 {
			m.left[i] -= min(m.left[i], 1)
			old = append(old, s)
		} else if samples.Sited(s.ID) && (uint64(f.Birth) <= from || f.AtLeast) {
			late = append(late, s)
		} else {
			fresh = append(fresh, s)
		}
	}
	if n := uint64(len(late)); n > 0 && uint64(f.Birth) <= from {
		m.old(f, n, late)
	} else if n > 0 {
		m.stratum(f).unclear += float64(n)
		m.add(f, partUnclear, n, late)
	}
	if n := uint64(len(old)); n > 0 {
		m.add(f, partPermanent, n, old)
	}
	if n := uint64(len(fresh)); n > 0 {
		m.add(f, partBorn, n, fresh)
	}
}

// old takes in objects of the second state that were there in the first, or are said to have been. A lower bound of the
// age says which they were only if it is as old as the first state. They are n of f, with these samples or none.
func (m *matching) old(f *heap.Folded, all uint64, samples []*heap.Sample) {
	k, ok := m.was[matchKeyOf(f)]
	if !ok || f.AtLeast && m.relisted {
		k = int32(len(m.f1))
	}
	n := min(m.left[k], all)
	m.left[k] -= n
	m.stratum(f).loose += float64(all - n)
	known := min(n, uint64(len(samples)))
	if n > 0 {
		m.add(f, partPermanent, n, samples[:known])
	}
	if n < all {
		m.add(f, partLoose, all-n, samples[known:])
	}
}

// died takes in what is left of the first state; r is the second.
func (m *matching) died(r *heap.View) {
	for i, n := range m.left {
		if n == 0 {
			continue
		}
		f := &m.f1[i]
		m.stratum(f).gone += float64(n)
		var dead []*heap.Sample
		for _, s := range f.Samples {
			if r.Sample(s.ID) == nil {
				dead = append(dead, s)
			}
		}
		m.add(f, partDied, n, dead)
	}
}
