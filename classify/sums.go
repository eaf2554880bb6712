package classify

import "github.com/heapcam/heapcam/analysis/stats"

// stratum is what samples stand for one another in.
type stratum struct {
	o, bytes   float64 // all
	uo, ubytes float64 // without a sample
	so, sbytes stats.Total
	fit        int32 // of what is sampled; of the rest the next
}

func (s *stratum) add(t *Tuple) {
	if t.Sampled {
		s.sample(&SampledSum{t.Objects, t.Bytes, t.WObjects, t.WBytes})
		return
	}
	s.o += float64(t.Objects)
	s.bytes += float64(t.Bytes)
	s.uo += float64(t.Objects)
	s.ubytes += float64(t.Bytes)
}

func (s *stratum) sample(x *SampledSum) {
	s.o += float64(x.Objects)
	s.bytes += float64(x.Bytes)
	s.so.Plus(x.WObjects, 1)
	s.sbytes.Plus(x.WBytes, 1)
}

// fits gives the multipliers of what is sampled, and of the rest.
func (s *stratum) fits() (sampled, rest fit) {
	fo, g, gLow, gHigh := multipliers(s.o, s.uo, s.so)
	fb, h, hLow, hHigh := multipliers(s.bytes, s.ubytes, s.sbytes)
	return fit{mo: fo, mb: fb}, fit{mo: g, mb: h, moLow: gLow, moHi: gHigh, mbLow: hLow, mbHigh: hHigh}
}

// multipliers gives those of samples and of the rest, and the bounds of the latter.
func multipliers(all, rest float64, sampled stats.Total) (f, g, lo, hi float64) {
	f = 1
	if rest == 0 || sampled.Sum > all {
		if sampled.Sum == 0 {
			return 0, 1, 1, 1
		}
		f = all / sampled.Sum
	}
	if rest == 0 {
		return f, 0, 0, 0
	}
	l, h := sampled.Interval()
	return f, max(0, all-f*sampled.Sum) / rest, max(0, all-h) / rest, max(0, all-l*f) / rest
}

// Estimate gives for each tuple how many objects and bytes it stands for, if samples stand for what was not sampled:
// what a tree whose first level looks at sites counts.
func Estimate(w *World, ts []Tuple) (objects, bytes []float64) {
	b := newBuilder(w, ts, nil)
	for _, it := range b.estimate(b.all()) {
		t, f := &ts[it.t], &b.fits[it.fit]
		if t.Sampled {
			objects, bytes = append(objects, f.mo*t.WObjects.Sum), append(bytes, f.mb*t.WBytes.Sum)
		} else {
			objects, bytes = append(objects, f.mo*float64(t.Objects)), append(bytes, f.mb*float64(t.Bytes))
		}
	}
	return objects, bytes
}

// sumsOf adds tuples up: exactly, or what they stand for.
type sumsOf struct {
	n                               Figure
	so, sb                          stats.Total // as they count
	weightedO, weightedB            stats.Total // as they were drawn
	sampledBytes                    uint64
	o, by, oLow, oHigh, bLow, bHigh float64
	most                            ceilingSum
}

func (s *sumsOf) exact(objects, bytes uint64) {
	s.n.Objects += objects
	s.n.Bytes += bytes
}

func (s *sumsOf) estimate(t *Tuple, f *fit) {
	if t.Sampled {
		s.sampled(&SampledSum{t.Objects, t.Bytes, t.WObjects, t.WBytes}, f)
		return
	}
	s.rest(t.Objects, t.Bytes, f)
}

func (s *sumsOf) sampled(x *SampledSum, f *fit) {
	s.so.Plus(x.WObjects, f.mo)
	s.sb.Plus(x.WBytes, f.mb)
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
	n.Objects, n.Bytes = rounded(s.o+s.so.Sum), rounded(s.by+s.sb.Sum)
	objects, bytes := s.most.get()
	low, high := s.weightedO.Bounds(s.n.Samples, objects)
	n.ObjLow, n.ObjHigh = around(n.Objects, s.oLow+float64(low), s.oHigh+float64(high))
	low, high = s.weightedB.Bounds(s.sampledBytes, bytes)
	n.BytesLow, n.BytesHigh = around(n.Bytes, s.bLow+float64(low), s.bHigh+float64(high))
	n.Estimated = s.uncertain() || n.ObjLow != n.ObjHigh || n.BytesLow != n.BytesHigh
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
