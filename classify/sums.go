package classify

// stratum is what samples stand for one another in.
type stratum struct {
	o, bytes   float64 // all
	uo, ubytes float64 // without a sample
	so, sbytes Total
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
	s.so.plus(x.WObjects, 1)
	s.sbytes.plus(x.WBytes, 1)
}

// fits gives the multipliers of what is sampled, and of the rest.
func (s *stratum) fits() (sampled, rest fit) {
	fo, g, gLow, gHigh := multipliers(s.o, s.uo, s.so)
	fb, h, hLow, hHigh := multipliers(s.bytes, s.ubytes, s.sbytes)
	return fit{mo: fo, mb: fb}, fit{g, h, gLow, gHigh, hLow, hHigh}
}

// multipliers gives those of samples and of the rest, and the bounds of the latter.
func multipliers(all, rest float64, sampled Total) (f, g, lo, hi float64) {
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
	so, sb                          Total
	o, by, oLow, oHigh, bLow, bHigh float64
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
	s.so.plus(x.WObjects, f.mo)
	s.sb.plus(x.WBytes, f.mb)
	s.n.Samples += x.Objects
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
	l, h := s.so.Interval()
	n.ObjLow, n.ObjHigh = rounded(s.oLow+l), rounded(s.oHigh+h)
	l, h = s.sb.Interval()
	n.BytesLow, n.BytesHigh = rounded(s.bLow+l), rounded(s.bHigh+h)
	n.Estimated = n.ObjLow != n.ObjHigh || n.BytesLow != n.BytesHigh || n.ObjLow != n.Objects || n.BytesLow != n.Bytes
	return n
}
