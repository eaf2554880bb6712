// Package quality says after each collection of how much of the live heap the allocation site is known (ICPE'16 §4.3).
//
// Terms. *Exact*: a sample stands on the object. *Before the tape*: it may be older than the recording; an upper bound ("at most"), since
// deaths are counted by type and not by age. *Unknown*: the rest. Per type, with L live and E exact: B = L − E at the first sync point
// of a recording that began after its JVM (0 otherwise), B = min(B, L − E) after every later collection; unknown = L − E − B.
//
// Invariants: the three add up to all that lives; the figures follow from totals by type alone, so that Live, which has only the census
// of each epoch, and a replay, which has every object, say the same. It imports nothing but trace: the recorder uses it.
package quality

import "github.com/heapcam/heapcam/trace"

// Count is objects and bytes.
type Count struct{ Objects, Bytes uint64 }

func (c *Count) add(n Count) { c.Objects += n.Objects; c.Bytes += n.Bytes }

// less is c − n, not below zero.
func (c Count) less(n Count) Count {
	return Count{c.Objects - min(c.Objects, n.Objects), c.Bytes - min(c.Bytes, n.Bytes)}
}

// Quality is the figure after one collection.
type Quality struct{ Exact, Before, Unknown Count }

// Tape remembers what may be older than the recording. The zero value is a tape that began after its JVM.
type Tape struct {
	AtStart bool // the tape began with the JVM: nothing is older
	begun   bool
	before  map[uint32]Count
}

// After takes the totals by type after a collection and those of what samples stand on. Types without live objects may be left out.
func (t *Tape) After(live, exact map[uint32]Count) Quality {
	var q Quality
	next := make(map[uint32]Count, len(t.before))
	for typ, l := range live {
		e := exact[typ]
		e = Count{min(e.Objects, l.Objects), min(e.Bytes, l.Bytes)}
		rest := l.less(e)
		var b Count
		if !t.AtStart {
			b = rest
			if t.begun {
				was := t.before[typ]
				b = Count{min(was.Objects, rest.Objects), min(was.Bytes, rest.Bytes)}
			}
			if b != (Count{}) {
				next[typ] = b
			}
		}
		q.Exact.add(e)
		q.Before.add(b)
		q.Unknown.add(rest.less(b))
	}
	t.before, t.begun = next, true
	return q
}

type sample struct {
	typ  uint32
	size uint64
}

// maxFresh bounds the samples that wait for their collection, and those alive: a hostile JVM could name new ones for ever.
const maxFresh = 1 << 20

// Live follows a stream as it is recorded. Its cost per epoch follows the census and the samples; a sync point is scanned once.
// It is not safe for concurrent use.
type Live struct {
	tape        Tape
	types       *trace.TypeTable
	known       bool
	total       map[uint32]Count
	fresh, live map[uint64]sample
	q           Quality
}

// NewLive begins with nothing known. types is the caller's and must hold the types of the blocks given.
func NewLive(types *trace.TypeTable) *Live {
	return &Live{types: types, total: map[uint32]Count{}, fresh: map[uint64]sample{}, live: map[uint64]sample{}}
}

// JVM takes in what the recording is a recording of.
func (l *Live) JVM(j *trace.JVM) { l.tape.AtStart = j.Flags&trace.JVMAtStart != 0 }

// Samples takes in samples of the phase.
func (l *Live) Samples(ss []trace.Sample) {
	for _, s := range ss {
		if len(l.fresh) < maxFresh {
			l.fresh[s.ID] = sample{uint32(s.Type), s.Size}
		}
	}
}

// Lost says that epochs are missing: nothing is known until the next sync point.
func (l *Live) Lost() { l.known = false }

// Epoch takes in a collection.
func (l *Live) Epoch(e *trace.Epoch) {
	if e.Pause.Flags&trace.PauseExact == 0 {
		l.known = false
	}
	for _, r := range e.Resolved {
		if s, ok := l.fresh[r.ID]; ok && len(l.live) < maxFresh {
			l.live[r.ID] = s
		}
	}
	for _, id := range e.SampleDead {
		delete(l.live, id)
	}
	if e.Pause.Flags&trace.PauseEdenKept == 0 {
		clear(l.fresh)
	}
	if !l.known {
		return
	}
	for _, r := range e.Census {
		if !l.types.Known(r.Type) { // as the listings have it; bounds the table
			l.known = false
			return
		}
		c := l.total[uint32(r.Type)]
		for _, i := range [...]int{trace.CensusBornYoung, trace.CensusBornOld} {
			c.add(Count{r.Cells[i].Objects, r.Cells[i].Bytes})
		}
		l.total[uint32(r.Type)] = c
	}
	// Deaths after all births: a row of one bucket may take what a row of another has given.
	for _, r := range e.Census {
		c := l.total[uint32(r.Type)]
		for _, i := range [...]int{trace.CensusDiedYoung, trace.CensusDiedOld} {
			c = c.less(Count{r.Cells[i].Objects, r.Cells[i].Bytes})
		}
		if c == (Count{}) {
			delete(l.total, uint32(r.Type))
		} else {
			l.total[uint32(r.Type)] = c
		}
	}
	l.settle()
}

// Sync takes in a sync point. Its error is that of the listing; nothing is known then. A listing of no objects (depth samples) leaves
// everything unknown.
func (l *Live) Sync(s *trace.Sync) error {
	l.known = false
	at := make(map[uint64]uint32, len(s.Samples)) // samples of unknown type, by address
	for _, x := range s.Samples {
		if _, ok := l.live[x.ID]; ok {
			continue
		}
		if _, ok := l.fresh[x.ID]; !ok {
			at[x.Addr] = 0
		}
	}
	total := map[uint32]Count{}
	for _, blob := range s.Lists {
		t := trace.NewListTokens(blob, l.types)
		for t.Next() {
			if t.Kind != trace.ListObject {
				continue
			}
			c := total[t.Type]
			c.add(Count{1, t.Words * 8})
			total[t.Type] = c
			if len(at) > 0 {
				if _, ok := at[t.Addr]; ok {
					at[t.Addr] = t.Type
				}
			}
		}
		if err := t.Err(); err != nil {
			return err
		}
	}
	live := make(map[uint64]sample, len(s.Samples))
	for _, x := range s.Samples {
		if len(live) == maxFresh {
			break
		}
		v, ok := l.live[x.ID]
		if !ok {
			if v, ok = l.fresh[x.ID]; !ok {
				v = sample{at[x.Addr], x.Size}
			}
		}
		live[x.ID] = v
	}
	l.total, l.live, l.known = total, live, len(s.Lists) > 0
	if l.known {
		l.settle()
	}
	return nil
}

// Quality gives the figure after the newest collection; false while the state is not known.
func (l *Live) Quality() (Quality, bool) { return l.q, l.known }

func (l *Live) settle() {
	exact := map[uint32]Count{}
	for _, s := range l.live {
		c := exact[s.typ]
		c.add(Count{1, s.size})
		exact[s.typ] = c
	}
	l.q = l.tape.After(l.total, exact)
}
