package sites

import (
	"math/bits"

	"github.com/heapcam/heapcam/coverage"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// Names of the children that a split by site has besides the sites.
const (
	SiteUnknown     = "(site unknown)"
	BeforeRecording = "(before the recording)"
)

// kind is what objects must share for the samples among them to speak for the others: type, size (arrays: within a
// factor of two) and age (collections survived, within a factor of two). Whether one of them was sampled is chance.
type kind struct {
	class Class
	size  uint8 // bits of its size in words
	age   uint8 // bits of the number of collections since its birth
}

// stratum is what lives of one kind.
type stratum struct {
	n     float64            // samples
	sites map[uint64]float64 // of them, by frame
	// Of the others: those allocated during the recording, and those that may be older.
	rest, before heap.Count
}

// Strata is a state by kinds, and by classes for kinds of which few were sampled.
type Strata struct {
	kinds   map[kind]*stratum
	classes map[Class]*stratum // sites of all kinds of a class
	byKind  prior
	byClass prior
}

// prior are the parameters of a Pitman–Yor process, learnt from all kinds, or classes, of a state together: programs
// differ in how many sites one kind of object has.
type prior struct{ discount, strength float64 }

// known and unseen are coverage.Known and coverage.Unseen with these parameters.
func (q prior) known(n, k float64) float64  { return max(0, k-q.discount) / (n + q.strength) }
func (q prior) unseen(n, m float64) float64 { return (q.strength + q.discount*m) / (n + q.strength) }

// fit learns a prior: the discount from how many sites have one sample and how many two (Ney, Essen and Kneser 1994),
// the strength so that the mass kept for sites not seen is Good and Turing's on average, the share of samples that are
// the only one of their site. Few samples leave both near those of package coverage.
func fit[K comparable](all map[K]*stratum) prior {
	one, two, n := 1.0, 0.5, 2.0
	for _, x := range all {
		n += x.n
		for _, k := range x.sites {
			switch k {
			case 1:
				one++
			case 2:
				two++
			}
		}
	}
	q := prior{discount: one / (one + 2*two)}
	low, high := 0.0, 1000.0
	for range 30 {
		q.strength = (low + high) / 2
		mass := 1.0
		for _, x := range all {
			if x.n > 0 {
				mass += x.n * q.unseen(x.n, float64(len(x.sites)))
			}
		}
		if mass/n < min(one/n, 0.999) {
			low = q.strength
		} else {
			high = q.strength
		}
	}
	q.strength = max(q.strength, coverage.Strength)
	return q
}

// Stratify counts the state of r. It takes s as sampled only if keep says so (nil: always). Its cost is one pass over
// all objects.
func Stratify(r *heap.View, gc uint64, keep func(*heap.Sample) bool) *Strata {
	st := &Strata{kinds: map[kind]*stratum{}, classes: map[Class]*stratum{}}
	class := map[uint32]Class{}
	atStart := r.JVM.Flags&trace.JVMAtStart != 0
	type key struct { // the objects of a run mostly are of one kind
		typ       uint32
		size, age uint8
	}
	near := map[key]*stratum{}
	r.State.Each(func(o heap.Object) bool {
		k := key{o.Type, uint8(bits.Len64(o.Words)), uint8(bits.Len64(gc - min(gc, uint64(o.Birth))))}
		x := near[k]
		if x == nil {
			c, ok := class[o.Type]
			if !ok {
				c = ClassOf(r.Symbols, o.Type).Folded()
				class[o.Type] = c
			}
			kk := kind{c, k.size, k.age}
			if x = st.kinds[kk]; x == nil {
				x = &stratum{}
				st.kinds[kk] = x
			}
			near[k] = x
		}
		n := &x.rest
		if o.Sample != 0 {
			if s := r.Live[o.Sample]; s != nil && (keep == nil || keep(s)) {
				if x.sites == nil {
					x.sites = map[uint64]float64{}
				}
				x.sites[s.Frame]++
				x.n++
				return true
			}
		} else if o.AtLeast && !atStart {
			n = &x.before
		}
		n.Objects++
		n.Bytes += o.Words * 8
		return true
	})
	st.learn()
	return st
}

// StratifyTypes is stratify for a replay that only counts: the strata are the types, and before says how much of each
// may be older than the recording.
func StratifyTypes(r *heap.View, before func(typ uint32) heap.Count) *Strata {
	st := &Strata{kinds: map[kind]*stratum{}, classes: map[Class]*stratum{}}
	of := func(typ uint32) *stratum {
		k := kind{class: ClassOf(r.Symbols, typ).Folded()}
		x := st.kinds[k]
		if x == nil {
			x = &stratum{sites: map[uint64]float64{}}
			st.kinds[k] = x
		}
		return x
	}
	less := func(c, n heap.Count) heap.Count {
		return heap.Count{Objects: c.Objects - min(c.Objects, n.Objects), Bytes: c.Bytes - min(c.Bytes, n.Bytes)}
	}
	sampled := map[uint32]heap.Count{}
	for _, s := range r.Live {
		n := sampled[uint32(s.Type)]
		sampled[uint32(s.Type)] = heap.Count{Objects: n.Objects + 1, Bytes: n.Bytes + s.Size}
		x := of(uint32(s.Type))
		x.sites[s.Frame]++
		x.n++
	}
	for id, n := range r.Totals.PerType() {
		if n.Objects == 0 {
			continue
		}
		typ := uint32(id)
		x, rest, b := of(typ), less(n, sampled[typ]), before(typ)
		b = heap.Count{Objects: min(b.Objects, rest.Objects), Bytes: min(b.Bytes, rest.Bytes)}
		rest = less(rest, b)
		x.before = heap.Count{Objects: x.before.Objects + b.Objects, Bytes: x.before.Bytes + b.Bytes}
		x.rest = heap.Count{Objects: x.rest.Objects + rest.Objects, Bytes: x.rest.Bytes + rest.Bytes}
	}
	st.learn()
	return st
}

// learn adds the kinds up to classes, and fits the priors.
func (st *Strata) learn() {
	for k, x := range st.kinds {
		if x.n == 0 {
			continue
		}
		c := st.classes[k.class]
		if c == nil {
			c = &stratum{sites: map[uint64]float64{}}
			st.classes[k.class] = c
		}
		c.n += x.n
		for f, n := range x.sites {
			c.sites[f] += n
		}
	}
	st.byKind, st.byClass = fit(st.kinds), fit(st.classes)
}

// shares gives the probability of each site that an object of the kind without a sample is of it; what is missing to 1
// is that of a site without a sample. It is the predictive distribution of a Pitman–Yor process whose base is that of
// the other kinds of its class (a level of Teh's hierarchical model), so that a kind without samples takes what its
// class has.
func (st *Strata) shares(k kind, each func(frame uint64, p float64)) {
	c := st.classes[k.class]
	if c == nil {
		return
	}
	x := st.kinds[k]
	back := 1.0 // mass for the class
	if x.n > 0 {
		back = st.byKind.unseen(x.n, float64(len(x.sites)))
	}
	for f, n := range c.sites {
		m := x.sites[f]
		p := back * st.byClass.known(c.n-x.n, n-m) // the kind's own samples have had their say
		if m > 0 {
			p += st.byKind.known(x.n, m)
		}
		if p > 0 {
			each(f, p)
		}
	}
}

// Estimate is what the sites of a state have, and what no site has.
type Estimate struct {
	objects, bytes map[Key]float64 // inferred, of objects without a sample
	before         map[Class]heap.Count
}

func (st *Strata) Estimate() *Estimate {
	e := &Estimate{objects: map[Key]float64{}, bytes: map[Key]float64{}, before: map[Class]heap.Count{}}
	for k, x := range st.kinds {
		if b := x.before; b.Objects > 0 {
			h := e.before[k.class]
			e.before[k.class] = heap.Count{Objects: h.Objects + b.Objects, Bytes: h.Bytes + b.Bytes}
		}
		if x.rest.Objects == 0 {
			continue
		}
		st.shares(k, func(frame uint64, p float64) {
			s := Key{frame, k.class}
			e.objects[s] += float64(x.rest.Objects) * p
			e.bytes[s] += float64(x.rest.Bytes) * p
		})
	}
	return e
}
