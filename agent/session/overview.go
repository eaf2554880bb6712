package session

import (
	"cmp"
	"math"
	"slices"

	"github.com/heapcam/heapcam/coverage"
	"github.com/heapcam/heapcam/trace"
)

// overview gathers what the next summary of the open file says (docs/format/stream.md, "Summaries").
type overview struct {
	rows       []trace.CollectionRow
	born, died map[uint32]uint64 // objects by type, since the sync point before
	unlisted   bool              // a listing was left out: a reader does not know the state until the next one
}

// epoch takes in a collection; total and known are those of the state after it.
func (o *overview) epoch(e *trace.Epoch, total coverage.Count, known bool) {
	p := &e.Pause
	c := trace.CollectionRow{GC: p.GC, Kind: p.Kind, Start: p.Start, Dur: p.Dur, Probe: p.Probe, Cause: p.Cause}
	c.Before, c.Eden, c.Survivor, c.Humongous, c.Old = trace.InUse(e.Spaces)
	if known && !o.unlisted {
		c.Flags, c.Objects, c.Bytes = trace.RowKnown, total.Objects, total.Bytes
	}
	o.rows = append(o.rows, c)
	if p.Flags&trace.PauseExact == 0 {
		return
	}
	if o.born == nil {
		o.born, o.died = map[uint32]uint64{}, map[uint32]uint64{}
	}
	for i := range e.Census {
		r := &e.Census[i]
		if n := r.Cells[trace.CensusBornYoung].Objects + r.Cells[trace.CensusBornOld].Objects; n > 0 {
			o.born[uint32(r.Type)] += n
		}
		if n := r.Cells[trace.CensusDiedYoung].Objects + r.Cells[trace.CensusDiedOld].Objects; n > 0 {
			o.died[uint32(r.Type)] += n
		}
	}
}

// sync takes in a sync point that is stored. It gives the state after a collection without object data.
func (o *overview) sync(y *trace.Sync) {
	o.unlisted = false
	if n := len(o.rows); n > 0 && o.rows[n-1].GC == y.GC {
		c := &o.rows[n-1]
		c.Flags, c.Sync, c.Objects, c.Bytes = trace.RowKnown|trace.RowSynced, y.Probe, y.Objects, y.Bytes
	}
}

// slice takes in a part of a listing; total and known are those of the state behind it.
func (o *overview) slice(y *trace.Slice, total coverage.Count, known bool) {
	n := len(o.rows)
	if n == 0 || o.rows[n-1].GC != y.GC {
		return
	}
	c := &o.rows[n-1]
	c.Sync += y.Probe
	if y.Last() && known {
		o.unlisted = false
		c.Flags, c.Objects, c.Bytes = trace.RowKnown|trace.RowSynced, total.Objects, total.Bytes
	}
}

// take gives the summary of what has been gathered, nil if that is nothing, and begins anew. y is the sync point that
// it is made at, nil: none.
func (o *overview) take(y *trace.Sync, est *coverage.Live) *trace.Summary {
	n := len(o.rows)
	if n == 0 {
		return nil
	}
	out := &trace.Summary{First: o.rows[0].GC, Last: o.rows[n-1].GC, Collections: o.rows}
	if y != nil && y.GC == out.Last {
		out.At = y.GC
		out.Types, out.OtherTypes = o.types(est)
		out.Sites, out.OtherSites = sites(y, est)
		clear(o.born)
		clear(o.died)
	}
	o.rows = nil
	return out
}

func (o *overview) types(est *coverage.Live) ([]trace.TypeSum, uint64) {
	by := map[uint32]*trace.TypeSum{}
	of := func(typ uint32) *trace.TypeSum {
		t := by[typ]
		if t == nil {
			t = &trace.TypeSum{Type: uint64(typ)}
			by[typ] = t
		}
		return t
	}
	if !est.Totals(func(typ uint32, n coverage.Count) { t := of(typ); t.Objects, t.Bytes = n.Objects, n.Bytes }) {
		return nil, 0
	}
	for typ, n := range o.born {
		of(typ).Born = n
	}
	for typ, n := range o.died {
		of(typ).Died = n
	}
	return largest(by, func(a, b *trace.TypeSum) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Born, a.Born), cmp.Compare(a.Type, b.Type))
	})
}

func sites(y *trace.Sync, est *coverage.Live) ([]trace.SiteSum, uint64) {
	if len(y.Watching) > 0 { // what such samples stand for is not only their weight
		return nil, 0
	}
	type site struct{ typ, frame uint64 }
	type sum struct {
		trace.SiteSum
		objects, bytes float64
	}
	by := map[site]*sum{}
	untyped := uint64(0)
	for i := range y.Samples {
		l := &y.Samples[i]
		typ, ok := est.TypeOf(l.ID)
		if !ok || typ == 0 { // taken before its class was known, and not listed since
			untyped++
			continue
		}
		k := site{uint64(typ), l.Frame}
		s := by[k]
		if s == nil {
			s = &sum{SiteSum: trace.SiteSum{Type: k.typ, Frame: k.frame}}
			by[k] = s
		}
		w := trace.Weight(l.Size, l.Interval)
		s.Samples++
		s.objects += w
		s.bytes += w * float64(l.Size)
	}
	rows := make(map[site]*trace.SiteSum, len(by))
	for k, s := range by {
		s.Objects = uint64(min(math.Round(s.objects), trace.MaxCount))
		s.Bytes = uint64(min(math.Round(s.bytes), trace.MaxBytes))
		rows[k] = &s.SiteSum
	}
	list, others := largest(rows, func(a, b *trace.SiteSum) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Frame, b.Frame))
	})
	return list, others + untyped
}

// largest gives the first MaxSums of all in the order of less, and how many there are beyond.
func largest[K comparable, T any](all map[K]*T, less func(a, b *T) int) (out []T, others uint64) {
	list := make([]*T, 0, len(all))
	for _, t := range all {
		list = append(list, t)
	}
	slices.SortFunc(list, less)
	for _, t := range list[:min(len(list), trace.MaxSums)] {
		out = append(out, *t)
	}
	return out, uint64(len(list) - len(out))
}
