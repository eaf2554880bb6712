package grouping

import (
	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/classify"
)

// stratum is what samples stand for one another in: what there is of a type.
type stratum struct {
	o, bytes         float64 // all
	so, sbytes       stats.Total
	own, ownBytes    float64 // of the samples themselves
	before, oldBytes float64 // without a sample, that may be older than the recording
	few, fewBytes    float64 // without a sample, that few bytecodes have made
	fit              int32   // of what is sampled; of the rest, of what may be older and of few the next three
}

// stratumKey names a stratum; first: of the first of two states.
type stratumKey struct {
	typ   uint32
	first bool
}

// numFits are those of a stratum: sampled, the rest, what may be older than the recording, and what few bytecodes have
// made.
const numFits = 4

func (s *stratum) add(t *classify.Tuple, before bool) {
	if t.Sampled {
		s.sample(&SampledSum{t.Objects, t.Bytes, t.WObjects, t.WBytes})
		return
	}
	s.o += float64(t.Objects)
	s.bytes += float64(t.Bytes)
	if t.List > 0 {
		s.few += float64(t.Objects)
		s.fewBytes += float64(t.Bytes)
	}
	if before {
		s.before += float64(t.Objects)
		s.oldBytes += float64(t.Bytes)
	}
}

func (s *stratum) sample(x *SampledSum) {
	s.o += float64(x.Objects)
	s.bytes += float64(x.Bytes)
	s.own += float64(x.Objects)
	s.ownBytes += float64(x.Bytes)
	s.so.Plus(x.WObjects, 1)
	s.sbytes.Plus(x.WBytes, 1)
}

// fits gives the multipliers of what is sampled, of the rest, of what may be older than the recording, and of few.
func (s *stratum) fits() (all [numFits]fit) {
	o, g, old := multipliers(s.o, s.own, s.before, s.so, 0, 1)
	unknown := s.o - s.own - o*(s.so.Sum-s.own)
	b, h, oldBytes := multipliers(s.bytes, s.ownBytes, s.oldBytes, s.sbytes, stats.LeastObject*unknown, 1)
	if b < o { // as in sites.Fit
		o, g, old = multipliers(s.o, s.own, s.before, s.so, 0, b)
	}
	all[0] = fit{mo: o, mb: b}
	g, few := g.split(s.o-s.own-s.before, s.few)
	h, fewBytes := h.split(s.bytes-s.ownBytes-s.oldBytes, s.fewBytes)
	all[1] = fit{mo: g.value, mb: h.value, moLow: g.low, moHi: g.high, mbLow: h.low, mbHigh: h.high}
	all[3] = fit{mo: few.value, mb: fewBytes.value, moLow: few.low, moHi: few.high, mbLow: fewBytes.low,
		mbHigh: fewBytes.high}
	all[2] = fit{mo: old.value, mb: oldBytes.value, moLow: old.low, moHi: old.high, mbLow: oldBytes.low,
		mbHigh: oldBytes.high}
	return all
}

// unknown gives how many objects and bytes have no known site.
func (s *stratum) unknown() (objects, bytes float64) {
	f := s.fits()[0]
	return s.o - s.own - f.mo*(s.so.Sum-s.own), s.bytes - s.ownBytes - f.mb*(s.sbytes.Sum-s.ownBytes)
}

// share is by what something is multiplied, with its bounds.
type share struct{ value, low, high float64 }

// split gives the multipliers of what of fresh few bytecodes have not made, and of what they have: samples stand for
// both alike, but all that they stand for may be of one of the two.
func (s share) split(fresh, few float64) (rest, some share) {
	others := fresh - few
	bounds := func(of, not float64) share {
		if of <= 0 {
			return s
		}
		return share{s.value, min(s.value, max(0, s.low*fresh-not)/of), max(s.value, min(s.high*fresh, of)/of)}
	}
	return bounds(others, few), bounds(few, others)
}

// multipliers gives that of what samples stand for beside themselves (stats.Total.Fit), and those of what they leave
// of the rest and of what may be older. They stand for what is not older first, leave reserved, and get most at most.
func multipliers(all, own, before float64, sampled stats.Total, reserved, most float64) (f float64, rest, older share) {
	unsampled := all - own
	f = min(most, sampled.Fit(own, unsampled-min(unsampled, reserved)))
	known := f * (sampled.Sum - own)
	fresh := unsampled - before
	unknown := max(0, fresh-known)
	old := max(0, unsampled-known-unknown)
	if before > 0 {
		older = share{old / before, 0, old / before}
	}
	if fresh <= 0 {
		return f, rest, older
	}
	l, h := sampled.Interval()
	l, h = own+f*(l-own), own+f*(h-own)
	low, high := max(0, all-h-old), min(fresh, max(0, all-max(l, own)))
	return f, share{unknown / fresh, min(low, unknown) / fresh, max(high, unknown) / fresh}, older
}

// Estimate gives for each tuple how many objects and bytes it stands for, if samples stand for what was not sampled:
// what a tree whose first level looks at sites counts.
func Estimate(w *classify.World, ts []classify.Tuple) (objects, bytes []float64) {
	b := newBuilder(w, ts, nil)
	for _, it := range b.estimate(b.all()) {
		o, by := b.fits[it.fit].count(&ts[it.t])
		objects, bytes = append(objects, o), append(bytes, by)
	}
	return objects, bytes
}

// count gives how many objects and bytes a tuple stands for.
func (f *fit) count(t *classify.Tuple) (objects, bytes float64) {
	o, b := float64(t.Objects), float64(t.Bytes)
	if t.Sampled {
		return o + f.mo*(t.WObjects.Sum-o), b + f.mb*(t.WBytes.Sum-b)
	}
	return f.mo * o, f.mb * b
}

// sumsOf adds tuples up: exactly, or what they stand for.
type sumsOf struct {
	n                        Figure
	so, sb                   float64     // what samples count
	soMost                   float64     // so, as of sites.Tally.objectBounds
	weightedO, weightedB     stats.Total // as they were drawn
	sampledBytes             uint64
	o, by                    float64 // what has no sample counts
	oLow, oHigh, bLow, bHigh float64
	most                     ceilingSum
}

func (s *sumsOf) exact(objects, bytes uint64) {
	s.n.Objects += objects
	s.n.Bytes += bytes
}

func (s *sumsOf) estimate(t *classify.Tuple, f *fit) {
	if t.Sampled {
		s.sampled(&SampledSum{t.Objects, t.Bytes, t.WObjects, t.WBytes}, f)
		return
	}
	s.rest(t.Objects, t.Bytes, f)
}

func (s *sumsOf) sampled(x *SampledSum, f *fit) {
	o, b := float64(x.Objects), float64(x.Bytes)
	s.so += o + f.mo*(x.WObjects.Sum-o)
	s.soMost += o + max(f.mo, f.mb)*(x.WObjects.Sum-o)
	s.sb += b + f.mb*(x.WBytes.Sum-b)
	s.weightedO.Plus(x.WObjects, 1)
	s.weightedB.Plus(x.WBytes, 1)
	s.n.Samples += x.Objects
	s.sampledBytes += x.Bytes
	s.most.add(f.of)
}

// rest adds what has no sample.
func (s *sumsOf) rest(objects, bytes uint64, f *fit) {
	s.o += f.mo * float64(objects)
	s.by += f.mb * float64(bytes)
	s.oLow += f.moLow * float64(objects)
	s.oHigh += f.moHi * float64(objects)
	s.bLow += f.mbLow * float64(bytes)
	s.bHigh += f.mbHigh * float64(bytes)
}

// figure gives the sum.
func (s *sumsOf) figure(est bool) Figure {
	n := s.n
	if !est {
		n.ObjLow, n.ObjHigh, n.BytesLow, n.BytesHigh = n.Objects, n.Objects, n.Bytes, n.Bytes
		return n
	}
	n.Objects, n.Bytes = rounded(s.o+s.so), rounded(s.by+s.sb)
	objects, bytes := s.most.get()
	low, high := s.weightedO.Bounds(s.so, s.n.Samples, objects)
	if s.soMost > s.so {
		_, high = s.weightedO.Bounds(s.soMost, s.n.Samples, objects)
	}
	high = min(max(high, rounded(s.so)+s.most.lost), max(objects, s.n.Samples))
	n.ObjLow, n.ObjHigh = around(n.Objects, s.oLow+float64(low), s.oHigh+float64(high))
	low, high = s.weightedB.Bounds(s.sb, s.sampledBytes, bytes)
	high = min(max(high, rounded(s.sb)+s.most.lostBytes), max(bytes, s.sampledBytes))
	n.BytesLow, n.BytesHigh = around(n.Bytes, s.bLow+float64(low), s.bHigh+float64(high))
	n.Estimated = s.uncertain() || n.ObjLow != n.ObjHigh || n.BytesLow != n.BytesHigh
	return n
}

// brief gives the sum without bounds: the intervals of many groups take most of the time.
func (s *sumsOf) brief(est bool) Figure {
	if !est || !s.uncertain() {
		return s.figure(est)
	}
	n := s.n
	n.Objects, n.Bytes, n.Estimated = rounded(s.o+s.so), rounded(s.by+s.sb), true
	return n
}

// uncertain says whether samples stand for what was not sampled. That they are estimates is said even where their class
// leaves no room for another figure.
func (s *sumsOf) uncertain() bool { return s.weightedO.Variance > 0 || s.weightedB.Variance > 0 }

// around gives bounds as whole numbers with the figure between them: where weights are more than there is, the figure
// may be less than their interval.
func around(figure uint64, low, high float64) (uint64, uint64) {
	return min(figure, rounded(low)), max(figure, rounded(high))
}
