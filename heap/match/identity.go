package match

import (
	"slices"

	"github.com/heapcam/heapcam/heap/state"
	"github.com/heapcam/heapcam/trace"
)

// Identity through a pause without object data. A listing says what lives after it, the state what lived before.
//
// Young collections move nothing in old space: what is there as before is what was there before.
//
// A full collection of Serial or Parallel slides the live objects of old space down, in order, and may append young
// ones. Of the listing L of old space a prefix therefore is a subsequence of the state before, I; the rest, X, came
// from elsewhere. X is bounded by what young space held, and ends before it begins at the last sampled object of I: so
// the first m objects of L surely are of I. Samples are followed by the probe and split both sequences. Between two of
// them each object of L has a leftmost and a rightmost possible place in I (same code, not below its own address, what
// precedes and follows still fits); where both are one, its identity is *proven*. Nothing else is guessed: it keeps the
// newest birth that an object of its code had, as a bound.
//
// What may be a filler belongs to neither sequence. G1 compacts by several queues of regions: only samples keep their
// identity there.

// sequence walks over the objects of a state in a stretch, in either direction, without those that may be fillers.
type sequence struct {
	s          *state.State
	keys       []uint64
	kinds      []uint8
	start, end uint64
	ki, i      int // the object stood on
	ord        int // its number in the stretch
	lo, hi     int // the part of chunk ki in the stretch
	c          *state.Chunk
}

func newSequence(s *state.State, kinds []uint8, start, end uint64) *sequence {
	q := &sequence{s: s, keys: s.Keys(nil, start, end), kinds: kinds, start: start, end: end, ki: -1, ord: -1}
	return q
}

func (q *sequence) enter(ki int) {
	q.ki = ki
	q.c = q.s.Chunks[q.keys[ki]]
	base := q.keys[ki] << state.ChunkShift
	q.lo, q.hi = 0, len(q.c.Off)
	if base < q.start {
		q.lo, _ = slices.BinarySearch(q.c.Off, uint16(q.start-base))
	}
	if q.end-base < state.ChunkWords {
		q.hi, _ = slices.BinarySearch(q.c.Off, uint16(q.end-base))
	}
}

// next advances by one; false at the end, behind the last.
func (q *sequence) next() bool {
	for {
		if q.ki == len(q.keys) {
			return false
		}
		if q.c != nil {
			q.i++
		}
		for q.c == nil || q.i >= q.hi {
			if q.ki+1 >= len(q.keys) {
				if q.c != nil || len(q.keys) == 0 {
					q.ord++
				}
				q.ki, q.c = len(q.keys), nil
				return false
			}
			q.enter(q.ki + 1)
			q.i = q.lo
		}
		if q.kinds[q.c.Code[q.i]] == 0 {
			q.ord++
			return true
		}
	}
}

// prev steps back by one; false before the first.
func (q *sequence) prev() bool {
	for {
		if q.ki < 0 {
			return false
		}
		if q.c != nil {
			q.i--
		}
		for q.c == nil || q.i < q.lo {
			if q.ki == 0 || len(q.keys) == 0 {
				q.ki, q.c = -1, nil
				q.ord--
				return false
			}
			q.enter(q.ki - 1)
			q.i = q.hi - 1
		}
		if q.kinds[q.c.Code[q.i]] == 0 {
			q.ord--
			return true
		}
	}
}

func (q *sequence) addr() uint64 { return q.keys[q.ki]<<state.ChunkShift | uint64(q.c.Off[q.i]) }
func (q *sequence) code() uint32 { return q.c.Code[q.i] }

// Identify gives the objects of next, listed after a pause that is not exact, what the state before the pause knows of
// the same objects. It gives the number of objects whose identity is proven without a sample.
func (m *Matcher) Identify(s *trace.Sync, pause *trace.Pause, old, next *state.State) (proven uint64) {
	switch {
	case pause.Flags&(trace.PauseMissed|trace.PauseFault) != 0:
	case pause.Kind == trace.PauseYoung:
		return m.unmoved(s, old, next)
	case pause.Kind == trace.PauseFull && m.Symbols.JVM.RegionWords == 0:
		return m.slid(s, old, next)
	}
	return 0
}

// unmoved keeps what is in old and humongous space as it was before a young collection.
func (m *Matcher) unmoved(s *trace.Sync, old, next *state.State) (proven uint64) {
	var stay ranges
	if m.Symbols.JVM.RegionWords == 0 {
		stay = m.where(trace.SpaceOld, s.Spaces, nil)
	} else {
		for _, kind := range []uint64{trace.SpaceOld, trace.SpaceHumongous} {
			stay = append(stay, intersect(m.regionsOf(kind, m.Regions), m.regionsOf(kind, s.Regions))...)
		}
	}
	for _, g := range stay {
		for _, k := range next.Keys(nil, g.Start, g.Start+g.Words) {
			o, n := old.Chunks[k], next.Chunks[k]
			if o == nil {
				continue
			}
			base := k << state.ChunkShift
			i := 0
			for j, off := range n.Off {
				if a := base | uint64(off); a < g.Start || a-g.Start >= g.Words {
					continue
				}
				for i < len(o.Off) && o.Off[i] < off {
					i++
				}
				if i < len(o.Off) && o.Off[i] == off && o.Code[i] == n.Code[j] {
					n.SetBirth(j, o.Born(i))
					proven++
				}
			}
			n.Level()
		}
	}
	return proven
}

// intersect gives what is in both; both ascend.
func intersect(a, b ranges) (out ranges) {
	for len(a) > 0 && len(b) > 0 {
		lo, hi := max(a[0].Start, b[0].Start), min(a[0].Start+a[0].Words, b[0].Start+b[0].Words)
		if lo < hi {
			out = append(out, trace.Range{Start: lo, Words: hi - lo})
		}
		if a[0].Start+a[0].Words < b[0].Start+b[0].Words {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}

// slid proves identities through a full collection that slides old space. It gives the number of proven objects.
func (m *Matcher) slid(s *trace.Sync, old, next *state.State) uint64 {
	var space, before trace.Space
	young := uint64(0) // words that young space held, at most
	for _, sp := range s.Spaces {
		if sp.Kind == trace.SpaceOld {
			space = sp
		}
	}
	for _, sp := range m.Spaces {
		switch sp.Kind {
		case trace.SpaceOld:
			before = sp
		case trace.SpaceEden:
			young += sp.UsedBefore / 8
		case trace.SpaceSurvivor: // the other one may hold something after a promotion that failed
			young += sp.UsedBefore/8 + sp.End - sp.Bottom
		}
	}
	if space.End <= space.Bottom || before.Bottom != space.Bottom {
		return 0
	}
	start, end := space.Bottom, max(space.End, before.End)
	kinds := m.kinds(next.Codes)
	had := uint64(0)
	newest := make([]uint32, len(kinds)) // birth of the newest object of each code that was in old space
	for _, k := range old.Keys(nil, start, end) {
		o := old.Chunks[k]
		for i, off := range o.Off {
			if a := k<<state.ChunkShift | uint64(off); a < start || a >= end {
				continue
			}
			code := o.Code[i]
			had += next.Codes.Words[code]
			newest[code] = max(newest[code], o.Born(i)&^old.Marks)
		}
	}
	if had > before.UsedBefore/8 {
		return 0
	}
	e := &embedding{old: old, next: next, kinds: kinds, start: start, end: end, newest: newest}
	e.anchor(s.Samples, old)
	if !e.leftmost(young + before.UsedBefore/8 - had) {
		return 0
	}
	return e.rightmost()
}

// embedding is the work on one full collection.
type embedding struct {
	old, next  *state.State
	kinds      []uint8
	start, end uint64
	newest     []uint32
	anchors    map[uint64]uint64 // of L: the address of a sampled object to the one it had in I
	left       []uint32          // by number in L: number in I of the leftmost place
	sure       int               // so many objects of L are of I
}

// anchor finds the samples that are in both sequences.
func (e *embedding) anchor(live []trace.LiveSample, old *state.State) {
	was := map[uint64]uint64{} // by id, address before
	for _, k := range old.Keys(nil, e.start, e.end) {
		c := old.Chunks[k]
		for _, s := range c.Samples {
			if a := k<<state.ChunkShift | uint64(s.Off); a >= e.start && a < e.end {
				was[s.ID] = a
			}
		}
	}
	e.anchors = map[uint64]uint64{}
	for _, l := range live {
		if a, ok := was[l.ID]; ok && l.Addr >= e.start && l.Addr < e.end {
			e.anchors[l.Addr] = a
		}
	}
}

// leftmost embeds L from the left; false if it does not fit, so that nothing can be said. foreign bounds the words that
// are not of I.
func (e *embedding) leftmost(foreign uint64) bool {
	// From behind: as long as all that follows may be foreign, so may this one.
	q := newSequence(e.next, e.kinds, e.start, e.end)
	n, last := 0, 0
	for q.next() {
		n++
		if _, ok := e.anchors[q.addr()]; ok {
			last = n
		}
	}
	e.sure = n
	for words := uint64(0); q.prev(); e.sure-- {
		if words += e.next.Codes.Words[q.code()]; words > foreign {
			break
		}
	}
	e.sure = max(e.sure, last)
	e.left = make([]uint32, e.sure)
	l, i := newSequence(e.next, e.kinds, e.start, e.end), newSequence(e.old, e.kinds, e.start, e.end)
	for p := range e.left {
		l.next()
		want, at := l.code(), l.addr()
		a, anchored := e.anchors[at]
		if anchored {
			at = a
		}
		for {
			if !i.next() {
				return false
			}
			if x := i.addr(); x >= at && (i.code() == want && !anchored || x == a && anchored) {
				if i.code() != want {
					return false
				}
				break
			} else if anchored && x > a {
				return false
			}
		}
		e.left[p] = uint32(i.ord)
	}
	return true
}

// rightmost embeds it from the right and gives births to the objects of L.
func (e *embedding) rightmost() (proven uint64) {
	l, i := newSequence(e.next, e.kinds, e.start, e.end), newSequence(e.old, e.kinds, e.start, e.end)
	for i.next() {
	}
	for range e.left {
		l.next()
	}
	if e.sure == 0 {
		return 0
	}
	births := make([]uint32, e.sure)
	for p := e.sure - 1; p >= 0; p-- {
		want := l.code()
		a, anchored := e.anchors[l.addr()]
		for i.prev() {
			if i.code() == want && (!anchored || i.addr() == a) {
				break
			}
		}
		if i.c == nil { // cannot be: the leftmost embedding is one
			return 0
		}
		if uint32(i.ord) == e.left[p] {
			births[p] = i.c.Born(i.i)
			proven++
		} else {
			births[p] = e.newest[want] | state.AtLeastMark
		}
		l.prev()
	}
	l = newSequence(e.next, e.kinds, e.start, e.end)
	var done *state.Chunk
	for _, b := range births {
		l.next()
		if l.c != done && done != nil {
			done.Level()
		}
		done = l.c
		l.c.SetBirth(l.i, b)
	}
	done.Level()
	return proven
}
