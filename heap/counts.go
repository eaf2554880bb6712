package heap

import (
	stdcmp "cmp"
	"slices"

	"github.com/heapcam/heapcam/trace"
)

// NewCounter begins a replay at the start of src that does not follow single objects: its State knows how many objects and bytes of each type there
// are (PerType, Bytes, Objects) and nothing else. Samples are followed as ever. It needs no tokens of epochs, but those of listings: between two
// of these it goes by the census of each collection, which counts as the tokens do. Compared stays empty, and what is wrong in tokens alone is not
// found; Unsure says that the census can not be relied on.
func NewCounter(src BlockSource) *Replayer {
	r := NewReplayer(src)
	r.State.counted = true
	return r
}

// Counts says whether r was made by NewCounter.
func (r *Replayer) Counts() bool { return r.State.counted }

// tally adds to what there is of a type.
func (s *State) tally(typ uint32, n Count) {
	s.n += int(n.Objects)
	s.bytes += n.Bytes
	if typ >= denseTypes {
		return
	}
	if grow := int(typ) + 1 - len(s.perType); grow > 0 {
		s.perType = append(s.perType, make([]Count, grow)...)
	}
	s.perType[typ].Objects += n.Objects
	s.perType[typ].Bytes += n.Bytes
}

// census applies what the census of an exact epoch counts. Deaths come after all births: a row of one bucket may take what a row of another has
// given.
func (r *Replayer) census(e *trace.Epoch) {
	st := r.State
	if len(e.Census) == 0 && len(e.Allocs)+len(e.Moves)+len(e.Births)+len(e.Freed) > 0 {
		r.Unsure = true // of a probe that counts nothing, or nothing was born and nothing died
	}
	for i := range e.Census {
		row := &e.Census[i]
		for _, c := range [...]trace.CensusCell{row.Cells[trace.CensusBornYoung], row.Cells[trace.CensusBornOld]} {
			if c != (trace.CensusCell{}) {
				st.tally(uint32(min(row.Type, denseTypes)), Count(c))
			}
		}
	}
	for i := range e.Census {
		row := &e.Census[i]
		for _, c := range [...]trace.CensusCell{row.Cells[trace.CensusDiedYoung], row.Cells[trace.CensusDiedOld]} {
			if c == (trace.CensusCell{}) {
				continue
			}
			if row.Type >= uint64(len(st.perType)) {
				r.Unsure = true
				continue
			}
			t := &st.perType[row.Type]
			if t.Objects < c.Objects || t.Bytes < c.Bytes {
				r.Unsure = true
			}
			n, b := min(c.Objects, t.Objects), min(c.Bytes, t.Bytes)
			t.Objects -= n
			t.Bytes -= b
			st.n -= int(n)
			st.bytes -= b
		}
	}
}

// listed is what a listing says of the place of a live sample.
type listed struct {
	addr uint64
	typ  uint32
	here bool
}

// agrees says whether a sync point tells nothing new: as many objects and bytes as are counted, and no live sample that is not known.
func (r *Replayer) agrees(s *trace.Sync) bool {
	if !r.Known || s.Objects != uint64(r.State.n) || s.Bytes != r.State.bytes {
		return false
	}
	for i := range s.Samples {
		if x := r.Live[s.Samples[i].ID]; x == nil || x.Type == 0 {
			return false
		}
	}
	return true
}

// count makes a state of a listing, and says what it lists at the samples' addresses, which it sorts.
func (r *Replayer) count(s *trace.Sync) (*State, []listed, error) {
	at := make([]listed, len(s.Samples))
	for i := range s.Samples {
		at[i].addr = s.Samples[i].Addr
	}
	slices.SortFunc(at, func(a, b listed) int { return stdcmp.Compare(a.addr, b.addr) })
	st := newState()
	st.counted = true
	st.perType = make([]Count, 0, len(r.State.perType))
	const none = ^uint64(0)
	for _, blob := range s.Lists {
		l := trace.NewListTokens(blob, r.table)
		next, want := 0, none
		for l.Next() {
			if l.Kind != trace.ListObject {
				next, _ = slices.BinarySearchFunc(at, l.Addr, func(a listed, addr uint64) int { return stdcmp.Compare(a.addr, addr) })
				if want = none; next < len(at) {
					want = at[next].addr
				}
				continue
			}
			if t := l.Type; uint64(t) < uint64(len(st.perType)) {
				st.perType[t].Objects++
				st.perType[t].Bytes += l.Words * 8
				st.n++
				st.bytes += l.Words * 8
			} else {
				st.tally(t, Count{1, l.Words * 8})
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
		if err := l.Err(); err != nil {
			return nil, nil, err
		}
	}
	return st, at, nil
}

// recount is what a sync point is to a replay that only counts.
func (r *Replayer) recount(s *trace.Sync) (at []listed, err error) {
	if r.agrees(s) {
		return nil, nil
	}
	next, at, err := r.count(s)
	if err != nil {
		return nil, err
	}
	r.State = next
	return at, nil
}
