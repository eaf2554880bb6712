package state

import (
	"fmt"
	"slices"

	"github.com/heapcam/heapcam/trace"
)

// Evacuation is memory that Evacuate uses again. Its zero value is ready. Emptied, if it is set, is called with each
// range that an epoch evacuates: then there may be objects that the state does not know, so what comes out of nowhere
// may be older than it seems.
type Evacuation struct {
	Emptied func(trace.Range)

	moved moved
}

// Evacuate applies what an exact epoch reports: moves, deaths and births. sizes is what its tokens are decoded with.
// After an error the state is of no use any more.
func (s *State) Evacuate(e *trace.Epoch, sizes *trace.TypeTable, scratch *Evacuation) error {
	s.renumber()
	t := taker{s: s}
	m := &scratch.moved
	defer func() {
		t.finish()
		m.lose(s)
		m.clear()
	}()
	gc := uint32(e.Pause.GC)
	for _, blobs := range [...][][]byte{e.Moves, e.Allocs} {
		for _, b := range blobs {
			if err := s.walk(b, sizes, gc, &t, scratch); err != nil {
				return err
			}
		}
	}
	for _, f := range e.Freed {
		t.begin(f.Start, f.Words)
		if scratch.Emptied != nil {
			scratch.Emptied(f)
		}
	}
	t.finish()
	m.settle(s)
	m.clear()
	codes := s.Codes
	for _, b := range e.Births {
		l := trace.NewListTokens(b, sizes)
		for l.Next() {
			if l.Kind == trace.ListObject {
				s.put(l.Addr, codes.Of(l.Type, l.Length, l.Words), gc)
			}
		}
		if err := l.Err(); err != nil {
			return err
		}
	}
	return nil
}

// walk takes what one list of segments reports out of the state: what moves is in m then.
func (s *State) walk(blob []byte, sizes *trace.TypeTable, gc uint32, t *taker, scratch *Evacuation) error {
	m := &scratch.moved
	if scratch.Emptied != nil {
		gc |= AtLeastMark
	}
	w := trace.NewWalkTokens(blob, sizes)
	w.Alive = true
	var batch [64]trace.Moved
	for {
		n := w.Moves(batch[:])
		for i := range batch[:n] {
			x := &batch[i]
			if err := s.move(x.Addr, x.Dest, x.Type, uint64(x.Length), uint64(x.Words), gc, t, m); err != nil {
				return err
			}
		}
		if n == len(batch) {
			continue
		}
		if !w.Next() {
			break
		}
		switch w.Kind {
		case trace.WalkSegment:
			t.begin(w.Addr, w.Words)
			if scratch.Emptied != nil {
				scratch.Emptied(trace.Range{Start: w.Addr, Words: w.Words})
			}
		case trace.WalkMove:
			if err := s.move(w.Addr, w.Dest, w.Type, w.Length, w.Words, gc, t, m); err != nil {
				return err
			}
		}
	}
	t.finish()
	return w.Err()
}

// move takes an object from addr out of the state and adds it to m; one that is not known is born.
func (s *State) move(addr, dest uint64, typ uint32, length, words uint64, gc uint32, t *taker, m *moved) error {
	codes := s.Codes
	code, birth, sample, ok := t.take(addr)
	switch {
	case !ok:
		code, birth = codes.Of(typ, length, words), gc
		codes.Count[code]++
		s.n++
	case codes.Type[code] != typ || codes.Length[code] != length:
		m.add(dest, code, birth, sample)
		return fmt.Errorf("type %d moves from %d where type %d was known", typ, addr, codes.Type[code])
	}
	m.add(dest, code, birth, sample)
	return nil
}

// taker walks over what is in a range, in order of address, and takes it out: each object either moves or dies.
type taker struct {
	s          *State
	start, end uint64
	keys       []uint64
	ki         int
	c          *Chunk // of keys[ki], nil if not entered
	from, i, j int    // the part of c in the range; i is the next
	sample     int
}

// begin ends the range before and starts with [start, start+words).
func (t *taker) begin(start, words uint64) {
	t.finish()
	t.start, t.end = start, start+words
	t.keys, t.ki, t.c = t.s.Keys(t.keys[:0], t.start, t.end), 0, nil
}

func (t *taker) enter() {
	k := t.keys[t.ki]
	t.c = t.s.Chunks[k]
	t.s.Tidy(t.c)
	base := k << ChunkShift
	t.from, t.j = 0, len(t.c.Off)
	if base < t.start {
		t.from, _ = slices.BinarySearch(t.c.Off, uint16(t.start-base))
	}
	if t.end-base < ChunkWords {
		t.j, _ = slices.BinarySearch(t.c.Off, uint16(t.end-base))
	}
	t.i, t.sample = t.from, 0
}

// leave lets die what is left of the chunk and goes to the next.
func (t *taker) leave() {
	count := t.s.Codes.Count
	for _, code := range t.c.Code[t.i:t.j] {
		count[code]--
	}
	t.s.n -= t.j - t.i
	t.s.cut(t.keys[t.ki], t.c, t.from, t.j)
	t.c = nil
	t.ki++
}

// take gives code, birth and sample of the object at addr, which leaves its place without having died: it still counts.
// Addresses must not descend.
func (t *taker) take(addr uint64) (code, birth uint32, sample uint64, ok bool) {
	k := addr >> ChunkShift
	for t.ki < len(t.keys) {
		if t.c == nil {
			if t.keys[t.ki] > k {
				return 0, 0, 0, false
			}
			t.enter()
		}
		if t.keys[t.ki] < k {
			t.leave()
			continue
		}
		if t.keys[t.ki] > k {
			return 0, 0, 0, false
		}
		c, off := t.c, uint16(addr&(ChunkWords-1))
		for t.i < t.j && c.Off[t.i] < off {
			t.s.Codes.Count[c.Code[t.i]]--
			t.s.n--
			t.i++
		}
		if t.i == t.j || c.Off[t.i] != off {
			return 0, 0, 0, false
		}
		code, birth = c.Code[t.i], c.Born(t.i)
		if len(c.Samples) > 0 {
			for t.sample < len(c.Samples) && c.Samples[t.sample].Off < off {
				t.sample++
			}
			for t.sample < len(c.Samples) && c.Samples[t.sample].Off == off {
				sample = c.Samples[t.sample].ID
				t.sample++
			}
		}
		t.i++
		return code, birth, sample, true
	}
	return 0, 0, 0, false
}

// finish ends the range.
func (t *taker) finish() {
	for t.ki < len(t.keys) {
		if t.c == nil {
			t.enter()
		}
		t.leave()
	}
	t.keys, t.ki = t.keys[:0], 0
}

// moved holds what left its place, or was born, and waits for its new one; it counts already.
type moved struct {
	dest   []uint64
	code   []uint32
	birth  []uint32
	sample []struct {
		i  int
		id uint64
	}
}

func (m *moved) add(dest uint64, code, birth uint32, sample uint64) {
	if sample != 0 {
		m.sample = append(m.sample, struct {
			i  int
			id uint64
		}{len(m.dest), sample})
	}
	m.dest = append(m.dest, dest) // one by one: only then is a pointer written no more than when it grows
	m.code = append(m.code, code)
	m.birth = append(m.birth, birth)
}

// settle puts all of it into s.
func (m *moved) settle(s *State) {
	for i, d := range m.dest {
		s.lay(d, m.code[i], m.birth[i])
	}
	for _, x := range m.sample {
		d := m.dest[x.i]
		s.writable(d>>ChunkShift).mark(uint16(d&(ChunkWords-1)), x.id)
	}
}

// lose counts all of it out of s: it has no place.
func (m *moved) lose(s *State) {
	for _, code := range m.code {
		s.Codes.Count[code]--
		s.n--
	}
}

// clear empties it; what it holds stays allocated unless it is much.
func (m *moved) clear() {
	const keep = 1 << 20
	if cap(m.dest) > keep {
		*m = moved{}
	}
	m.dest, m.code, m.birth, m.sample = m.dest[:0], m.code[:0], m.birth[:0], m.sample[:0]
}
