// Package coverage computes, after each collection, the share of the live heap whose allocation site is known (ICPE'16
// §4.3).
//
// Terms. Each live object is in one of six groups. *Exact*: the object itself was sampled. *Proven*: only one bytecode
// can have made it (Proofs). *Before the recording*: it may be older than the recording. This figure is an upper bound,
// since deaths are counted by type and not by age. *Inferred*: each other object counts with the probability that it
// comes from the likeliest site of its type (sites.go). So the figure does not jump where a share is near some bound.
// *Candidates*: of the rest, what one of two to four bytecodes has made. *Unknown*: what then remains.
//
// For each type, with L live objects, E exact ones and B before the recording: at the first sync point of a recording
// that began after its JVM, B = L − E; in other recordings B = 0. After every later collection B = min(B, L − E). The
// objects that are proven, inferred, of candidates or unknown are L − E − B.
//
// Invariants: the six add up to all that lives; the figures follow from totals by type alone, so that Live, which has
// only the census of each epoch, and a replay, which has every object, say the same. It imports nothing but trace: the
// recorder uses it.
package coverage

import (
	"cmp"
	"math"
	"slices"

	"github.com/heapcam/heapcam/trace"
)

// Count is objects and bytes.
type Count struct{ Objects, Bytes uint64 }

func (c *Count) add(n Count) { c.Objects += n.Objects; c.Bytes += n.Bytes }

// less is c − n, not below zero.
func (c Count) less(n Count) Count {
	return Count{c.Objects - min(c.Objects, n.Objects), c.Bytes - min(c.Bytes, n.Bytes)}
}

// most is c, at most n.
func (c Count) most(n Count) Count { return Count{min(c.Objects, n.Objects), min(c.Bytes, n.Bytes)} }

// part is a share of c.
func (c Count) part(p float64) Count {
	return Count{uint64(p * float64(c.Objects)), uint64(p * float64(c.Bytes))}
}

// Figure is the figure after one collection. All but Resolved add up to all that lives. Resolved is what lives of types
// whose largest site has a share that is known to ±10 % (standard error).
type Figure struct{ Exact, Inferred, Before, Unknown, Resolved, Proven, Candidates Count }

// Live is all that lives.
func (q *Figure) Live() (n Count) {
	for _, c := range [...]Count{q.Exact, q.Inferred, q.Before, q.Unknown, q.Proven, q.Candidates} {
		n.add(c)
	}
	return n
}

// denseTypes bounds the ids that totals keep in a slice, 16 bytes each. The ids of a program that loads and drops
// classes rise for as long as it runs, and what has been dropped must take nothing.
const denseTypes = 1 << 13

// Totals are counts by type id. The zero value is empty.
type Totals struct {
	dense []Count
	far   map[uint32]Count // ids from denseTypes on; none is zero
}

// Add adds n to what typ has.
func (t *Totals) Add(typ uint32, n Count) {
	if uint64(typ) >= uint64(len(t.dense)) {
		t.room(typ)
	}
	if typ < denseTypes {
		t.dense[typ].add(n)
		return
	}
	c := t.far[typ]
	c.add(n)
	t.far[typ] = c
}

// Sub takes n from what typ has; nothing goes below zero.
func (t *Totals) Sub(typ uint32, n Count) {
	if uint64(typ) < uint64(len(t.dense)) {
		t.dense[typ] = t.dense[typ].less(n)
	} else if c, ok := t.far[typ]; ok {
		if c = c.less(n); c == (Count{}) {
			delete(t.far, typ)
		} else {
			t.far[typ] = c
		}
	}
}

// room makes place for typ.
func (t *Totals) room(typ uint32) {
	if typ >= denseTypes {
		if t.far == nil {
			t.far = map[uint32]Count{}
		}
		return
	}
	t.dense = append(t.dense, make([]Count, int(typ)+1-len(t.dense))...)
}

func (t *Totals) at(typ uint32) Count {
	if uint64(typ) < uint64(len(t.dense)) {
		return t.dense[typ]
	}
	return t.far[typ]
}

// clear empties t and keeps its room.
func (t *Totals) clear() {
	clear(t.dense)
	clear(t.far)
}

func (t *Totals) sum() (s Count) {
	for _, c := range t.dense {
		s.add(c)
	}
	for _, c := range t.far {
		s.add(c)
	}
	return s
}

// Recording remembers what may be older than the recording. The zero value is a recording that began after its JVM.
type Recording struct {
	AtStart bool    // the recording began with the JVM: nothing is older
	Proofs  *Proofs // nil: nobody reads bytecodes. State is called before After
	begun   bool
	before  Totals
	few     Totals // what has one candidate, or few, after the last call of After
	from    map[uint32][]trace.Candidate
}

// fromFew gives how much of rest one of few bytecodes has made, and these.
func (t *Recording) fromFew(typ uint32, l, e, b, rest Count) (n Count, from []trace.Candidate) {
	if t.Proofs == nil {
		return n, nil
	}
	if n, from = t.Proofs.Of(typ, l, e, b); n.Objects == 0 {
		return Count{}, nil
	}
	n = n.most(rest)
	t.few.Add(typ, n)
	t.from[typ] = from
	return n, from
}

// FromFew gives how much of typ one of the given bytecodes has made, without what samples stand on, after the last call
// of After.
func (t *Recording) FromFew(typ uint32) (Count, []trace.Candidate) { return t.few.at(typ), t.from[typ] }

// Before returns how much of typ may be older than the recording, at most, after the last call of After.
func (t *Recording) Before(typ uint32) Count { return t.before.at(typ) }

// After takes the totals by type after a collection, those of what samples stand on, and the sites of these samples. It
// keeps none.
func (t *Recording) After(live, exact *Totals, sites *Sites) Figure {
	var q Figure
	one := func(typ uint32, l, e, was Count) (b Count) {
		e = e.most(l)
		rest := l.less(e)
		if !t.AtStart {
			b = rest
			if t.begun {
				b = was.most(rest)
			}
		}
		q.Exact.add(e)
		q.Before.add(b)
		p, sure := sites.likeliest(typ)
		rest = rest.less(b)
		few, from := t.fromFew(typ, l, e, b, rest)
		if len(from) == 1 {
			q.Proven.add(few)
			rest, few = rest.less(few), Count{}
		}
		inferred := rest.part(p)
		few = few.less(few.part(p)) // samples stand for those of candidates and for others alike
		few = few.most(rest.less(inferred))
		q.Inferred.add(inferred)
		q.Candidates.add(few)
		q.Unknown.add(rest.less(inferred).less(few))
		if sure {
			q.Resolved.add(l)
		}
		return b
	}
	t.few.clear()
	t.from = map[uint32][]trace.Candidate{}
	if n := len(live.dense) - len(t.before.dense); n > 0 {
		t.before.dense = append(t.before.dense, make([]Count, n)...)
	}
	for i := range t.before.dense {
		if i < len(live.dense) && live.dense[i] != (Count{}) {
			t.before.dense[i] = one(uint32(i), live.dense[i], exact.at(uint32(i)), t.before.dense[i])
		} else {
			t.before.dense[i] = Count{}
		}
	}
	if len(live.far)+len(t.before.far) > 0 {
		far := make(map[uint32]Count, len(live.far))
		for typ, l := range live.far {
			far[typ] = one(typ, l, exact.far[typ], t.before.far[typ])
		}
		t.before.far = far
	}
	t.begun = true
	return q
}

type sample struct {
	typ, interval uint32
	size, frame   uint64
}

// of makes a sample, of a mean interval of so many bytes: at most 1 GiB.
func of(typ uint32, size, frame, interval uint64) sample {
	return sample{typ, uint32(min(interval, math.MaxUint32)), size, frame}
}

// maxFresh bounds the samples that wait for their collection, and those alive: a hostile JVM could name new ones for
// ever.
const maxFresh = 1 << 20

// Live follows a stream as it is recorded. Its cost per epoch follows the census and what the samples do; a sync point
// is scanned if its total is not what the census says, or after a marking of G1: hardly ever but at the first. It is
// not safe for concurrent use.
type Live struct {
	recording   Recording
	sweeps      trace.Sweeps
	types       *trace.TypeTable
	known       bool
	total       Totals
	exact       Totals // of live
	sites       Sites  // of live
	fresh, live map[uint64]sample
	q           Figure
	stale       bool // q is of an older state
	scans       int

	ramp      ramp
	gc        uint64 // of the newest epoch
	gap, knew bool   // epochs after it were lost; all was known before

	flows *Flows // nil: nobody follows
}

// Prove has l follow proofs. It is called before all else.
func (l *Live) Prove(p *Proofs) { l.recording.Proofs = p }

// NewLive begins with nothing known. types is the caller's and must hold the types of the blocks given.
func NewLive(types *trace.TypeTable) *Live {
	return &Live{types: types, fresh: map[uint64]sample{}, live: map[uint64]sample{}}
}

// JVM takes in what the recording is a recording of.
func (l *Live) JVM(j *trace.JVM) {
	l.recording.AtStart = j.Flags&trace.JVMAtStart != 0
	if p := l.recording.Proofs; p != nil {
		p.JVM(l.recording.AtStart)
	}
	l.sweeps.JVM(j)
}

// Samples takes in samples of the phase.
func (l *Live) Samples(ss []trace.Sample) {
	for _, s := range ss {
		if len(l.fresh) < maxFresh {
			l.fresh[s.ID] = of(uint32(s.Type), s.Size, s.Frame, s.Interval)
		}
		if l.recording.Proofs != nil {
			l.recording.Proofs.Sample(uint32(s.Type), s.Frame, l.gc+1)
		}
		if l.flows != nil {
			l.flows.Allocated.add(of(uint32(s.Type), s.Size, s.Frame, s.Interval))
		}
	}
}

// Lost says that epochs are missing: nothing is known until the next sync point, unless the next epoch counts for them,
// too.
func (l *Live) Lost() {
	if !l.gap {
		l.gap, l.knew = true, l.known
	}
	l.known = false
}

// Alive gives how many samples are alive.
func (l *Live) Alive() int { return len(l.live) }

// Held gives how many samples, and sites of flows, are remembered.
func (l *Live) Held() int {
	n := len(l.fresh) + len(l.live)
	if l.recording.Proofs != nil {
		n += l.recording.Proofs.held()
	}
	if l.flows != nil {
		n += len(l.flows.Allocated) + len(l.flows.Survived) + len(l.flows.Freed)
	}
	return n
}

// Epoch takes in a collection.
func (l *Live) Epoch(e *trace.Epoch) {
	l.sweeps.Pause(&e.Pause)
	l.heal(e)
	if l.recording.Proofs != nil {
		l.recording.Proofs.Epoch(e, l.known)
	}
	for _, r := range e.Resolved {
		s, ok := l.fresh[r.ID]
		if _, twice := l.live[r.ID]; ok && !twice && len(l.live) < maxFresh {
			l.live[r.ID] = s
			l.exact.Add(s.typ, Count{1, s.size})
			l.sites.Add(s.typ, s.frame)
			if l.flows != nil {
				l.flows.Survived.add(s)
			}
		}
	}
	for _, id := range e.SampleDead {
		if s, ok := l.live[id]; ok {
			if l.flows != nil {
				l.flows.Freed.add(s)
			}
			delete(l.live, id)
			l.exact.Sub(s.typ, Count{1, s.size})
			l.sites.Sub(s.typ, s.frame)
		}
	}
	if e.Pause.Flags&trace.PauseEdenKept == 0 {
		clear(l.fresh)
	}
	if l.ramp.open && !l.census(e, &l.ramp.total, true) {
		l.ramp.open = false
	}
	if !l.known {
		return
	}
	if l.known = l.census(e, &l.total, false); !l.known {
		return
	}
	l.settle()
}

// found is a sample of a sync point; typ is that of the object that is listed at addr.
type found struct {
	addr uint64
	i    int // in Sync.Samples
	typ  uint32
	here bool
}

// Sync takes in a sync point. Its error is that of the listing; nothing is known then. A listing of no objects (depth
// samples) leaves everything unknown.
func (l *Live) Sync(s *trace.Sync) error {
	if l.known && l.agrees(s) {
		l.sweeps.Listed()
		return nil
	}
	l.known = false
	at := make([]found, len(s.Samples))
	for i, x := range s.Samples {
		at[i] = found{addr: x.Addr, i: i}
	}
	slices.SortFunc(at, func(a, b found) int { return cmp.Compare(a.addr, b.addr) })
	l.scans++
	l.total.clear()
	if err := l.scan(s.Lists, at); err != nil {
		return err
	}
	live := make(map[uint64]sample, len(at))
	l.exact.clear()
	l.sites.clear()
	for _, f := range at {
		x := s.Samples[f.i]
		v, ok := l.live[x.ID]
		if !ok {
			if v, ok = l.fresh[x.ID]; !ok {
				v = of(f.typ, x.Size, x.Frame, x.Interval)
			}
		}
		if v.typ == 0 { // taken before its class was known
			v.typ = f.typ
		}
		switch _, twice := live[x.ID]; {
		case twice:
		case f.here && len(live) < maxFresh:
			live[x.ID] = v
			l.exact.Add(v.typ, Count{1, v.size})
			l.sites.Add(v.typ, v.frame)
		case !f.here && len(l.fresh) < maxFresh: // in eden: it enters the state later, or never
			l.fresh[x.ID] = v
		}
	}
	l.live, l.known, l.gap, l.ramp.open, l.gc = live, len(s.Lists) > 0, false, false, s.GC
	if l.known {
		l.sweeps.Listed()
		l.settle()
	}
	return nil
}

// agrees says whether a sync point has nothing new: as many objects and bytes as the census gives, none of which G1
// may have overwritten, and no live sample that is not known or has no type, or that the sync point does not name.
func (l *Live) agrees(s *trace.Sync) bool {
	if len(s.Lists) == 0 || l.sweeps.Doubt() || l.total.sum() != (Count{s.Objects, s.Bytes}) {
		return false
	}
	n := 0
	for _, x := range s.Samples {
		if v, ok := l.live[x.ID]; ok {
			if v.typ == 0 {
				return false
			}
			n++
		} else if _, ok := l.fresh[x.ID]; !ok {
			return false
		}
	}
	return n == len(l.live)
}

// scan counts what is listed and marks the samples whose objects are. at ascends.
func (l *Live) scan(lists [][]byte, at []found) error {
	for _, blob := range lists {
		t := trace.NewListTokens(blob, l.types)
		next, want := 0, ^uint64(0)
		objects, words := make([]uint64, t.Types()), make([]uint64, t.Types())
		for {
			t.Count(objects, words, want)
			if !t.Next() {
				break
			}
			if t.Kind != trace.ListObject {
				next, _ = slices.BinarySearchFunc(at, t.Addr,
					func(f found, a uint64) int { return cmp.Compare(f.addr, a) })
				if want = ^uint64(0); next < len(at) {
					want = at[next].addr
				}
				continue
			}
			if typ := t.Type; uint64(typ) < uint64(len(l.total.dense)) {
				c := &l.total.dense[typ]
				c.Objects++
				c.Bytes += t.Words * 8
			} else {
				l.total.Add(typ, Count{1, t.Words * 8})
			}
			for t.Addr >= want {
				if t.Addr == want {
					at[next].typ, at[next].here = t.Type, true
				}
				next++
				if want = ^uint64(0); next < len(at) {
					want = at[next].addr
				}
			}
		}
		if err := t.Err(); err != nil {
			return err
		}
		for typ, n := range objects {
			if n > 0 {
				l.total.Add(uint32(typ), Count{n, 8 * words[typ]})
			}
		}
	}
	return nil
}

// Figure gives the figure after the newest collection; false while the state is not known.
func (l *Live) Figure() (Figure, bool) {
	if l.known && l.stale {
		l.stale = false
		l.q = l.recording.After(&l.total, &l.exact, &l.sites)
	}
	return l.q, l.known
}

// Total gives all that lives after the newest collection, for less than Figure; false while the state is not known.
func (l *Live) Total() (Count, bool) { return l.total.sum(), l.known }

// settle takes in a state that is known. What may be older than the recording needs each state, other figures only the
// one that is asked for.
func (l *Live) settle() {
	if l.recording.Proofs != nil {
		l.recording.Proofs.State(l.gc, &l.total)
	}
	if l.stale = true; !l.recording.AtStart {
		l.Figure()
	}
}
