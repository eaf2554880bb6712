package tracetest

import (
	"slices"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/ramp"
)

// Naive is a rule of listings in slices that the model breaks; docs/design/0019-rolling-sync-points.md has them. A test
// that finds no difference then tests nothing.
type Naive int

// Rules that can be broken.
const (
	NaiveNot         Naive = iota
	NaiveTop               // a slice lists up to the top of its pause, not of the ramp's start
	NaiveMoves             // moves out of what is not listed yet are not reported
	NaiveCensus            // one census for what is listed and what is not
	NaiveCarry             // the census of lost epochs is lost with them
	NaiveYoung             // a loss makes nothing but young space unknown
	NaiveAgain             // what was lost is listed as if it had not been counted
	NaiveIncarnation       // an area is another one if its kind has changed or its top has fallen
)

// rolling is what the model keeps for listings in slices.
type rolling struct {
	src       ramp.Source
	open      bool   // the last slice of the ramp has not come
	committed uint64 // collection whose epoch was the newest that was not lost
	// what lost epochs have counted
	census    map[[2]uint64]*trace.CensusRow
	uncounted map[[2]uint64]*trace.UncountedRow
}

// exact says whether the epoch has the moves of the pause.
func (f *finish) exact() bool { return f.kind != trace.PauseFull && f.evac == 0 && !f.fault }

// loseFirst says what a reader has to forget before the epoch in hand.
func (f *finish) loseFirst() {
	r := &f.roll
	if f.cfg.Slice == 0 {
		return
	}
	if !f.exact() {
		r.src.Forget()
		r.open = false
		return
	}
	if !r.src.Behind() {
		return
	}
	before := r.src.Unknown.Clone()
	cleared, unknown := r.src.Lost()
	if f.cfg.Naive == NaiveYoung {
		r.src.Unknown = before
		cleared, unknown = f.onlyYoung(cleared), f.onlyYoung(unknown)
		for _, x := range unknown {
			r.src.Unknown.Add(x)
		}
	}
	if f.cfg.Naive == NaiveAgain {
		r.src.Uncounted = r.src.Unknown.Clone()
	}
	f.e.Lost = trace.Lost{Since: r.committed, Cleared: cleared, Unknown: unknown}
	r.open = true
}

func (f *finish) onlyYoung(all ramp.Ranges) (out ramp.Ranges) {
	for i, a := range f.mem.areas() {
		if f.mem.isYoung(i) {
			all.Split(trace.Range{Start: a.Bottom, Words: a.Top - a.Bottom}, func(r trace.Range, has bool) {
				if has {
					out.Add(r)
				}
			})
		}
	}
	return out
}

// hidden says whether a move from at is not reported.
func (f *finish) hidden(at uint64) bool {
	return f.cfg.Naive == NaiveMoves && f.roll.src.Unknown.Has(at)
}

// countUncounted counts an object that the ramp had not listed.
func (f *finish) countUncounted(o *obj, died bool) {
	bucket := trace.Bucket(o.Age)
	if o.Space == trace.SpaceOld || o.Space == trace.SpaceHumongous {
		bucket = trace.BucketOld
	}
	k := [2]uint64{uint64(o.Type), bucket}
	if f.uncounted[k] == nil {
		f.uncounted[k] = &trace.UncountedRow{Type: k[0], Bucket: k[1]}
	}
	c := &f.uncounted[k].Gained
	if died {
		c = &f.uncounted[k].Died
	}
	c.Objects++
	c.Bytes += o.Words * 8
}

// carry keeps the counts of an epoch that is lost for the next one, and ends the pause for the ramp.
func (f *finish) carry() {
	r := &f.roll
	r.census, r.uncounted = nil, nil
	if f.cfg.Slice == 0 {
		return
	}
	if f.dropped && r.src.Follows() && f.cfg.Naive != NaiveCarry {
		r.census, r.uncounted = f.census, f.uncounted
	}
	areas := f.mem.areas()
	if f.cfg.Naive == NaiveIncarnation {
		for i := range areas {
			areas[i].Incarnation = 0
			if f.mem.isYoung(i) {
				areas[i].Incarnation = 1
			}
			if areas[i].Top == areas[i].Bottom {
				areas[i].Incarnation = 2
			}
		}
	}
	r.src.Finish(areas, !f.dropped)
	if !f.dropped {
		r.committed = f.gc
	}
}

func (f *finish) recordUncounted() {
	for _, r := range f.uncounted {
		f.e.Uncounted = append(f.e.Uncounted, *r)
	}
	slices.SortFunc(f.e.Uncounted, func(a, b trace.UncountedRow) int {
		if a.Type != b.Type {
			return cmp(a.Type, b.Type)
		}
		return cmp(a.Bucket, b.Bucket)
	})
}

// writeSlice writes the next slice of the ramp under way, or the first one of a new ramp if one is due.
func (f *finish) writeSlice() {
	r := &f.roll
	first := f.owe != 0 && (!r.open || !r.src.Follows())
	switch {
	case first:
		r.src.Start()
		r.open = true
	case !r.open || f.r.IntN(5) == 0:
		return
	}
	s := &trace.Slice{GC: f.gc, Ramp: r.src.Ramp, Reason: max(f.owe, trace.SyncFirst), Time: f.now, Probe: 300,
		Spaces: f.mem.spaces(), Regions: f.mem.regions()}
	f.owe = 0
	if first {
		s.Flags, s.Pending = trace.SliceFirst, r.src.Unknown.Clone()
		f.ep.First = true
	}
	if f.cfg.Naive == NaiveTop {
		f.toTop()
	}
	f.listSlice(s)
	r.src.Slice++
	s.N = r.src.Slice
	s.Left, s.Uncounted = r.src.Unknown.Words(), r.src.Uncounted.Words()
	if s.Left == 0 {
		s.Flags |= trace.SliceLast
		s.Samples = f.liveSamples()
		for _, l := range s.Samples {
			s.SampleTypes = append(s.SampleTypes, uint64(f.known[l.Addr].Type))
		}
		r.open, f.lost = false, false
		f.ep.Synced = true
	}
	f.ep.Blocks = append(f.ep.Blocks, f.sealAs(trace.EncodeSlice(s), trace.SliceFormatVersion))
}

// toTop adds what old space has gained to what is to be listed.
func (f *finish) toTop() {
	src := &f.roll.src
	for i, a := range f.mem.areas() {
		all := trace.Range{Start: a.Bottom, Words: a.Top - a.Bottom}
		if !f.mem.isYoung(i) && src.Uncounted.Meets(all) {
			at := src.Uncounted[0].Start
			for _, u := range src.Uncounted {
				if u.Start >= a.Bottom {
					at = u.Start
					break
				}
			}
			more := trace.Range{Start: at, Words: a.Top - at}
			src.Unknown.Add(more)
			src.Uncounted.Add(more)
		}
	}
}

// listSlice lists as much as a pause may: old space by address, then young space.
func (f *finish) listSlice(s *trace.Slice) {
	src := &f.roll.src
	known := f.sorted()
	list, again := trace.NewListEncoder(f.types), trace.NewListEncoder(f.types)
	used := uint64(0)
	listed := ramp.Ranges{}
	for _, part := range f.parts() {
		if used >= f.cfg.Slice {
			break
		}
		i, _ := slices.BinarySearchFunc(known, part.Start, func(o *obj, at uint64) int { return cmp(o.addr, at) })
		at, end := part.Start, part.Start+part.Words
		for ; i < len(known) && known[i].addr < end; i++ {
			if f.mem.regionWords() == 0 && used >= f.cfg.Slice { // a space is divided at any object
				break
			}
			o := known[i]
			enc := again
			if src.Uncounted.Has(o.addr) {
				enc = list
			}
			enc.Object(o.addr, o.Type, o.Length)
			s.Objects++
			s.Bytes += o.Words * 8
			used, at = used+o.Words, o.addr+o.Words
		}
		if i == len(known) || known[i].addr >= end {
			at = end
		}
		listed.Add(trace.Range{Start: part.Start, Words: at - part.Start})
	}
	must(list.Err())
	must(again.Err())
	if b := list.Bytes(); len(b) > 0 {
		s.Lists = [][]byte{b}
	}
	if b := again.Bytes(); len(b) > 0 {
		s.Again = [][]byte{b}
	}
	s.Listed = listed
	for _, r := range listed {
		src.Listed(r)
	}
}

// parts gives what is to be listed, as it may be divided: by areas, old ones first.
func (f *finish) parts() (out []trace.Range) {
	var young []trace.Range
	for i, a := range f.mem.areas() {
		f.roll.src.Unknown.Split(trace.Range{Start: a.Bottom, Words: a.Top - a.Bottom},
			func(r trace.Range, has bool) {
				switch {
				case !has:
				case f.mem.isYoung(i):
					young = append(young, r)
				default:
					out = append(out, r)
				}
			})
	}
	return append(out, young...)
}

// liveSamples gives the samples whose objects are in the state.
func (f *finish) liveSamples() (out []trace.LiveSample) {
	for _, o := range f.sorted() {
		if x, ok := f.given[o.Sample]; ok {
			out = append(out, trace.LiveSample{ID: x.ID, Addr: o.addr, Frame: x.Frame, Thread: x.Thread, Birth: o.Born,
				Interval: x.Interval, Size: x.Size})
		}
	}
	slices.SortFunc(out, func(a, b trace.LiveSample) int { return cmp(a.ID, b.ID) })
	return out
}

func (m *Model) sealAs(b trace.Block, version uint8) trace.Block {
	b = m.seal(b)
	b.Version = version
	return b
}
