package heap

import (
	"cmp"
	"slices"

	"github.com/heapcam/heapcam/heap/state"
	"github.com/heapcam/heapcam/trace"
)

// Census reads a recording and counts objects by type; it does not follow single objects. Samples are followed as a
// Replay does.
//
// It needs no tokens of epochs, but those of listings: between two listings it applies the census of each collection,
// which counts as the tokens do. What is wrong in tokens alone is not found. Make one with NewCensus.
type Census struct {
	Cursor
	Unsure bool // the counts in the stream contradict each other: Totals may be wrong

	totals *totals // of the state, or of what ramp has counted
	// A listing in slices is counted beside the totals that are known, and is the newer count when it is complete.
	ramp     *totals // nil: none is under way
	number   uint64  // of it
	unlisted uint64  // bytes that it has not counted
	all      bool    // totals are those of the state
}

// NewCensus begins at the start of src.
func NewCensus(src BlockSource) *Census {
	r := &Census{}
	r.Cursor = newCursor(src, r)
	r.set(&totals{})
	return r
}

func (r *Census) set(t *totals) { r.totals, r.Totals = t, t }

// totals is how many objects there are, by type.
type totals struct {
	objects int
	bytes   uint64
	perType []Count
}

func (t *totals) Objects() int     { return t.objects }
func (t *totals) Bytes() uint64    { return t.bytes }
func (t *totals) PerType() []Count { return t.perType }

// add adds to what there is of a type.
func (t *totals) add(typ uint32, n Count) {
	t.objects += int(n.Objects)
	t.bytes += n.Bytes
	if typ >= state.DenseTypes {
		return
	}
	t.perType = state.RoomFor(t.perType, typ)
	t.perType[typ].Objects += n.Objects
	t.perType[typ].Bytes += n.Bytes
}

// subtract takes from what there is of a type; false if there is less.
func (t *totals) subtract(typ uint64, n Count) bool {
	if typ >= uint64(len(t.perType)) {
		return false
	}
	have := &t.perType[typ]
	enough := have.Objects >= n.Objects && have.Bytes >= n.Bytes
	objects, bytes := min(n.Objects, have.Objects), min(n.Bytes, have.Bytes)
	have.Objects -= objects
	have.Bytes -= bytes
	t.objects -= int(objects)
	t.bytes -= bytes
	return enough
}

// apply applies the census of an exact epoch. Deaths come after all births: a row of one bucket may take what a row of
// another has given.
func (r *Census) apply(e *trace.Epoch) error {
	if len(e.Census)+len(e.Uncounted) == 0 && len(e.Allocs)+len(e.Moves)+len(e.Births)+len(e.Freed) > 0 {
		r.Unsure = true // of a probe that counts nothing, or nothing was born and nothing died
	}
	if r.all {
		r.sum(r.totals, e)
		for i := range e.Uncounted {
			row := &e.Uncounted[i]
			if !r.totals.subtract(row.Type, Count(row.Died)) {
				r.Unsure = true
			}
		}
	}
	if r.ramp != nil {
		for i := range e.Uncounted {
			r.ramp.add(uint32(min(e.Uncounted[i].Type, state.DenseTypes)), Count(e.Uncounted[i].Gained))
		}
		r.sum(r.ramp, e)
	}
	return nil
}

// sum applies the census to t.
func (r *Census) sum(t *totals, e *trace.Epoch) {
	for i := range e.Census {
		row := &e.Census[i]
		for _, c := range [...]trace.CensusCell{row.Cells[trace.CensusBornYoung], row.Cells[trace.CensusBornOld]} {
			if c != (trace.CensusCell{}) {
				t.add(uint32(min(row.Type, state.DenseTypes)), Count(c))
			}
		}
	}
	for i := range e.Census {
		row := &e.Census[i]
		for _, c := range [...]trace.CensusCell{row.Cells[trace.CensusDiedYoung], row.Cells[trace.CensusDiedOld]} {
			if c != (trace.CensusCell{}) && !t.subtract(row.Type, Count(c)) {
				r.Unsure = true
			}
		}
	}
}

// lose: the epoch's census has what the lost ones would have had.
func (r *Census) lose(*trace.Lost) bool { return true }

func (r *Census) known() (all bool, unlisted uint64) { return r.all, r.unlisted }

func (r *Census) forget() { r.ramp, r.all = nil, false }

// slice counts a part of a listing.
func (r *Census) slice(s *trace.Slice) (follows bool, find attach, err error) {
	if s.First() {
		r.ramp, r.number = &totals{}, s.Ramp
		if !r.all {
			r.set(r.ramp)
		}
	}
	if r.ramp != nil && s.Ramp == r.number {
		for _, blob := range s.Lists {
			l := trace.NewListTokens(blob, r.Sizes())
			if err := r.ramp.count(&l, nil); err != nil {
				return false, nil, err
			}
		}
		r.unlisted = 8 * s.Uncounted
		if s.Uncounted == 0 {
			r.set(r.ramp)
			r.all, r.ramp = true, nil
		}
	}
	types := map[uint64]uint64{}
	for i := range min(len(s.Samples), len(s.SampleTypes)) {
		types[s.Samples[i].ID] = s.SampleTypes[i]
	}
	return r.all || r.ramp != nil, func(l *trace.LiveSample, x *Sample) bool {
		if x.Type == 0 {
			x.Type = types[l.ID]
		}
		return true
	}, nil
}

// site: only a Replay knows which objects still live.
func (r *Census) site(sited []trace.SitedAddr, _, _ uint64) { r.Unsure = r.Unsure || len(sited) > 0 }

func (r *Census) resolve(_, _, _ uint64) bool { return true }

// list counts the listing, unless it says nothing new.
func (r *Census) list(s *trace.Sync) (attach, error) {
	if len(s.Lists) > 0 {
		r.all, r.ramp = true, nil
	}
	if len(s.Lists) == 0 || r.agrees(s) {
		return func(*trace.LiveSample, *Sample) bool { return true }, nil
	}
	next := &totals{perType: make([]Count, 0, len(r.totals.perType))}
	at := placesOf(s.Samples)
	for _, blob := range s.Lists {
		l := trace.NewListTokens(blob, r.Sizes())
		if err := next.count(&l, at); err != nil {
			return nil, err
		}
	}
	r.set(next)
	return at.attach, nil
}

// agrees says whether a sync point says nothing new: as many objects and bytes as are counted, none of which G1 may
// have overwritten, and no live sample that is not known.
func (r *Census) agrees(s *trace.Sync) bool {
	if !r.Known || r.sweeps.Doubt() || s.Objects != uint64(r.totals.objects) || s.Bytes != r.totals.bytes {
		return false
	}
	for i := range s.Samples {
		if x := r.Live.Get(s.Samples[i].ID); x == nil || x.Type == 0 {
			return false
		}
	}
	return true
}

// listed is what a listing says of the place of a live sample.
type listed struct {
	addr uint64
	typ  uint32
	here bool
}

// listedPlaces are the places of the live samples of a sync point, by address.
type listedPlaces []listed

func placesOf(live []trace.LiveSample) listedPlaces {
	at := make(listedPlaces, len(live))
	for i := range live {
		at[i].addr = live[i].Addr
	}
	slices.SortFunc(at, func(a, b listed) int { return cmp.Compare(a.addr, b.addr) })
	return at
}

// find gives the first place that is not below addr.
func (at listedPlaces) find(addr uint64) int {
	i, _ := slices.BinarySearchFunc(at, addr, func(a listed, addr uint64) int { return cmp.Compare(a.addr, addr) })
	return i
}

// attach gives a sample the type of what is listed at its address if it has none; false if nothing is there.
func (at listedPlaces) attach(l *trace.LiveSample, x *Sample) bool {
	i := at.find(l.Addr)
	if i == len(at) || at[i].addr != l.Addr || !at[i].here {
		return false
	}
	if x.Type == 0 {
		x.Type = uint64(at[i].typ)
	}
	return true
}

// count adds the objects of a listing, and marks in at what is listed there.
func (t *totals) count(l *trace.ListTokens, at listedPlaces) error {
	const none = ^uint64(0)
	next, want := 0, none
	objects, words := make([]uint64, l.Types()), make([]uint64, l.Types())
	for {
		l.Count(objects, words, want)
		if !l.Next() {
			break
		}
		if l.Kind != trace.ListObject {
			if want, next = none, at.find(l.Addr); next < len(at) {
				want = at[next].addr
			}
			continue
		}
		if k := l.Type; uint64(k) < uint64(len(t.perType)) {
			t.perType[k].Objects++
			t.perType[k].Bytes += l.Words * 8
			t.objects++
			t.bytes += l.Words * 8
		} else {
			t.add(k, Count{Objects: 1, Bytes: l.Words * 8})
		}
		for l.Addr >= want {
			if at[next].addr == l.Addr {
				at[next].typ, at[next].here = l.Type, true
			}
			if next++; next < len(at) {
				want = at[next].addr
			} else {
				want = none
			}
		}
	}
	for typ, n := range objects {
		if n > 0 {
			t.add(uint32(typ), Count{Objects: n, Bytes: 8 * words[typ]})
		}
	}
	return l.Err()
}

// Unsure says whether what r has read may be wrong because r only counts: then a Replay is needed.
func Unsure(r Reader) bool {
	c, ok := r.(*Census)
	return ok && c.Unsure
}
