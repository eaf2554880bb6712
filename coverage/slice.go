package coverage

import "github.com/heapcam/heapcam/trace"

// ramp is a listing in slices, which is counted beside what is known until it is complete
// (docs/design/0019-rolling-sync-points.md).
type ramp struct {
	open   bool
	number uint64
	total  Totals
}

// Slice takes in a part of a listing. Its error is that of the tokens; nothing is known then.
func (l *Live) Slice(s *trace.Slice) error {
	l.sweeps.Slice(s.First(), s.Last())
	r := &l.ramp
	if s.First() {
		r.open, r.number = true, s.Ramp
		r.total.clear()
	}
	if !r.open || r.number != s.Ramp {
		return nil
	}
	for _, blob := range s.Lists {
		t := trace.NewListTokens(blob, l.types)
		for t.Next() {
			if t.Kind == trace.ListObject {
				r.total.Add(t.Type, Count{1, t.Words * 8})
			}
		}
		if err := t.Err(); err != nil {
			l.Lost()
			r.open = false
			return err
		}
	}
	if s.Last() {
		r.open, l.known = false, true
		l.total, r.total = r.total, l.total
		l.adopt(s)
		l.settle()
	}
	return nil
}

// adopt makes the samples that the last slice names the live ones.
func (l *Live) adopt(s *trace.Slice) {
	live := make(map[uint64]sample, len(s.Samples))
	l.exact.clear()
	l.sites.clear()
	for i, x := range s.Samples {
		v, ok := l.live[x.ID]
		if !ok {
			v = of(0, x.Size, x.Frame, x.Interval)
		}
		if v.typ == 0 && i < len(s.SampleTypes) {
			v.typ = uint32(s.SampleTypes[i])
		}
		if _, twice := live[x.ID]; !twice && len(live) < maxFresh {
			live[x.ID] = v
			l.exact.Add(v.typ, Count{1, v.size})
			l.sites.Add(v.typ, v.frame)
		}
	}
	l.live = live
}

// heal says whether what was known before epochs were lost is known again: e counts for them, too.
func (l *Live) heal(e *trace.Epoch) {
	if l.gap {
		l.gap = false
		if e.Pause.Flags&trace.PauseExact != 0 && e.Lost.Since != 0 && e.Lost.Since == l.gc {
			l.known = l.knew
		} else {
			l.ramp.open = false
		}
	}
	if e.Pause.Flags&trace.PauseExact == 0 {
		l.known, l.ramp.open = false, false
	}
	l.gc = e.Pause.GC
}

// census applies the census of an epoch to total. ramping: total is what a ramp has counted so far.
func (l *Live) census(e *trace.Epoch, total *Totals, ramping bool) (ok bool) {
	for i := range e.Uncounted {
		if r := &e.Uncounted[i]; !l.types.Known(r.Type) {
			return false
		} else if ramping {
			total.Add(uint32(r.Type), Count(r.Gained))
		}
	}
	for _, r := range e.Census {
		if !l.types.Known(r.Type) { // as the listings have it; bounds the table
			return false
		}
		for _, i := range [...]int{trace.CensusBornYoung, trace.CensusBornOld} {
			if c := r.Cells[i]; c != (trace.CensusCell{}) {
				total.Add(uint32(r.Type), Count(c))
			}
		}
	}
	// Deaths after all births: a row of one bucket may take what a row of another has given.
	for _, r := range e.Census {
		for _, i := range [...]int{trace.CensusDiedYoung, trace.CensusDiedOld} {
			if c := r.Cells[i]; c != (trace.CensusCell{}) {
				total.Sub(uint32(r.Type), Count(c))
			}
		}
	}
	for i := range e.Uncounted {
		if r := &e.Uncounted[i]; !ramping {
			total.Sub(uint32(r.Type), Count(r.Died))
		}
	}
	return true
}
