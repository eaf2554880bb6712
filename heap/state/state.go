// Package state holds the objects that live after a collection, as columns over stretches of address space; there is
// never one Go value per object. An exact epoch changes a state (Evacuate), and a listing makes a new one (Listing).
//
// Terms: a *chunk* covers 256 KiB of addresses; a *code* stands for a pair of type and length; a *birth* is the number
// of the collection that an object was first seen after, with a mark if that is only the newest one possible. Addresses
// and sizes are in words of 8 bytes from the heap base.
//
// Invariants: codes count their objects at every instant; a chunk is written to by the state that owns it alone. This
// package does not follow samples or name anything.
package state

import (
	"slices"
)

// Object is one object of the state. Addr and Words are in words of 8 bytes from the heap base. Birth is the collection
// number of the phase it was allocated in or, without a sample, of the collection that first saw it. AtLeast says that
// the object's identity is not proven through a full collection or that it was there before the recording: it is this
// one or another of the same type, and its age is at least what Birth says. Sample is the id of its sample, 0 if it has
// none.
type Object struct {
	Addr, Words, Length uint64
	Type, Birth         uint32
	AtLeast             bool
	Sample              uint64
}

// State is the objects that live after a collection. Make one with New, or of a listing with Listing.
type State struct {
	Counts
	Chunks map[uint64]*Chunk // by address >> ChunkShift
	// what in a birth is not a collection's number: AtLeastMark and, if they are set, SpaceMarks
	Marks uint32

	near [nearChunks]struct { // cache of the chunks that were last written to
		k uint64
		c *Chunk
	}
	spare []*Chunk // empty ones, for reuse
	id    uint32   // owner id: chunks with another one are copied before they are written to
	stamp uint32   // grows with each Stamp
}

// nearChunks is the size of the cache near: a collection fills a few buffers at the same time.
const nearChunks = 64

func nearSlot(k uint64) uint64 { return k * 0x9e3779b97f4a7c15 >> 58 }

// maxSpare bounds the empty chunks that are kept: survivor spaces come and go with each collection.
const maxSpare = 256

// New gives a state without objects.
func New() *State {
	return &State{Counts: Counts{Codes: &Codes{}}, Chunks: map[uint64]*Chunk{}, Marks: AtLeastMark, id: newOwner()}
}

// writable gives the chunk of number k to add to.
func (s *State) writable(k uint64) *Chunk {
	n := &s.near[nearSlot(k)]
	if n.c != nil && n.k == k {
		return n.c
	}
	c := s.Chunks[k]
	if c == nil {
		if i := len(s.spare); i > 0 {
			c, s.spare = s.spare[i-1], s.spare[:i-1]
		} else {
			c = &Chunk{}
		}
		c.owner = s.id
		s.Chunks[k] = c
	}
	c = s.Own(k, c)
	n.k, n.c = k, c
	return c
}

func (s *State) drop(k uint64) {
	if c := s.Chunks[k]; len(s.spare) < maxSpare && c.owner == s.id && !c.lent {
		room := c.room
		if cap(c.Birth) > cap(room) {
			room = c.Birth
		}
		*c = Chunk{Off: c.Off[:0], Code: c.Code[:0], Samples: c.Samples[:0], room: room[:0]}
		s.spare = append(s.spare, c)
	}
	delete(s.Chunks, k)
	if n := &s.near[nearSlot(k)]; n.k == k {
		n.c = nil
	}
}

// put adds an object at an address that has none. birth includes the marks (State.Marks).
func (s *State) put(addr uint64, code, birth uint32) {
	s.Codes.Count[code]++
	s.n++
	s.lay(addr, code, birth)
}

// lay is put without counting: the object has been counted already.
func (s *State) lay(addr uint64, code, birth uint32) {
	c := s.writable(addr >> ChunkShift)
	off := uint16(addr & (ChunkWords - 1))
	n := len(c.Off)
	if n > 0 && c.Off[n-1] >= off {
		c.dirty = true
	}
	c.Off = append(c.Off, off)
	c.Code = append(c.Code, code)
	switch {
	case c.Birth != nil:
		c.Birth = append(c.Birth, birth)
	case n == 0:
		c.Same = birth
	case c.Same != birth:
		c.Spread()
		c.Birth = append(c.Birth[:n], birth)
	}
}

func (s *State) at(k uint64, c *Chunk, i int) Object {
	code, b := c.Code[i], c.Born(i)
	return Object{Addr: k<<ChunkShift | uint64(c.Off[i]), Words: s.Codes.Words[code], Length: s.Codes.Length[code],
		Type:  s.Codes.Type[code],
		Birth: b &^ s.Marks, AtLeast: b&AtLeastMark != 0, Sample: c.SampleOf(c.Off[i])}
}

// Keys gives the chunks that overlap [start, end), in order.
func (s *State) Keys(out []uint64, start, end uint64) []uint64 {
	lo, hi := start>>ChunkShift, (end+ChunkWords-1)>>ChunkShift
	if hi-lo < uint64(len(s.Chunks)) {
		for k := lo; k < hi; k++ {
			if s.Chunks[k] != nil {
				out = append(out, k)
			}
		}
		return out
	}
	for k := range s.Chunks {
		if k >= lo && k < hi {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// cut removes the objects i to j-1 of chunk k from its columns. The caller has updated the counts.
func (s *State) cut(k uint64, c *Chunk, i, j int) {
	if i == 0 && j == len(c.Off) {
		s.drop(k)
		return
	}
	if i == j {
		return
	}
	c = s.Own(k, c)
	from, to := c.Off[i], c.Off[j-1]
	c.Off = slices.Delete(c.Off, i, j)
	c.Code = slices.Delete(c.Code, i, j)
	if c.Birth != nil {
		c.Birth = slices.Delete(c.Birth, i, j)
	}
	if len(c.Samples) > 0 {
		c.Samples = slices.DeleteFunc(c.Samples, func(s SampleAt) bool { return s.Off >= from && s.Off <= to })
	}
}

// TypeAt gives the type of the object at addr; false if there is none.
func (s *State) TypeAt(addr uint64) (typ uint32, ok bool) {
	c, i, ok := s.find(addr)
	if ok {
		typ = s.Codes.Type[c.Code[i]]
	}
	return typ, ok
}

// Stamp returns a new stamp. Chunk.Written says whether a chunk was written to since then.
func (s *State) Stamp() uint32 {
	s.stamp++
	clear(s.near[:])
	return s.stamp
}

// find returns the chunk of the object at addr and its index there.
func (s *State) find(addr uint64) (*Chunk, int, bool) {
	c := s.Chunks[addr>>ChunkShift]
	if c == nil {
		return nil, 0, false
	}
	if c.dirty {
		s.order(c)
	}
	i, ok := slices.BinarySearch(c.Off, uint16(addr&(ChunkWords-1)))
	return c, i, ok
}

// SetSample attaches a sample and its birth to the object at addr; false if there is no object.
func (s *State) SetSample(addr, id, birth uint64) bool {
	c, i, ok := s.find(addr)
	if ok {
		k := addr >> ChunkShift
		c = s.ownSamples(k, c)
		c.mark(c.Off[i], id)
		if b := uint32(birth) | c.Born(i)&s.Marks&^AtLeastMark; birth < AtLeastMark && c.Born(i) != b {
			s.Own(k, c).SetBirth(i, b)
		}
	}
	return ok
}

// Each calls f for each object in order of address until f returns false.
func (s *State) Each(f func(Object) bool) {
	for _, k := range s.Keys(nil, 0, 1<<46) {
		c := s.Chunks[k]
		s.Tidy(c)
		for i := range c.Off {
			if !f(s.at(k, c, i)) {
				return
			}
		}
	}
}

// renumber drops the codes that no object has if they are many.
func (s *State) renumber() {
	if len(s.Codes.Type) < s.Codes.limit {
		return
	}
	next, to := s.Codes.trimmed()
	if next == nil {
		return
	}
	for k, c := range s.Chunks {
		c = s.Own(k, c)
		for i, code := range c.Code {
			c.Code[i] = to[code]
		}
	}
	s.Codes = next
}
