package state

import (
	"slices"
	"sync/atomic"
)

// States that were kept share chunks with the state that continues: who is not the owner of a chunk copies it before
// writing. So a kept state takes no more memory than what has changed since the one before.

var owners atomic.Uint32

func newOwner() uint32 { return owners.Add(1) }

// Own gives the chunk of number k to write to.
func (s *State) Own(k uint64, c *Chunk) *Chunk {
	if c.owner == s.id && !c.lent {
		c.stamp = s.stamp
		return c
	}
	n := *c
	n.Off, n.Code, n.Birth, n.lent = slices.Clone(c.Off), slices.Clone(c.Code), slices.Clone(c.Birth), false
	n.room = nil
	if c.owner != s.id {
		n.Samples, n.owner = slices.Clone(c.Samples), s.id
	}
	return s.replace(k, &n)
}

// ownSamples gives the chunk of number k to put samples on.
func (s *State) ownSamples(k uint64, c *Chunk) *Chunk {
	if c.owner == s.id {
		c.stamp = s.stamp
		return c
	}
	n := *c
	n.Samples, n.owner, n.lent, n.room = slices.Clone(c.Samples), s.id, true, nil
	return s.replace(k, &n)
}

func (s *State) replace(k uint64, c *Chunk) *Chunk {
	c.stamp = s.stamp
	s.Chunks[k] = c
	if n := &s.near[nearSlot(k)]; n.k == k {
		n.c = nil
	}
	return c
}

// Size is roughly what the chunk takes.
func (c *Chunk) Size() int {
	n := 16*cap(c.Samples) + 160
	if !c.lent {
		n += 2*cap(c.Off) + 4*cap(c.Code) + 4*cap(c.Birth)
	}
	return n
}

// Share gives the dictionary and counts of the state, without its chunks, and what the chunks that only this state
// holds take, in bytes, roughly. From then on the state copies a chunk before it writes to it: who has Chunks may keep
// them.
func (s *State) Share() (kept *State, own int) {
	for _, c := range s.Chunks {
		s.Tidy(c)
		if c.owner == s.id {
			own += c.Size()
		}
	}
	kept = &State{Counts: s.clone(), Marks: s.Marks, id: newOwner()}
	s.id = newOwner()
	clear(s.near[:])
	return kept, own
}

// Summary gives the counts of the state alone. They do not change with it.
func (s *State) Summary() *Counts {
	c := s.clone()
	return &c
}

// With gives a state to read with these chunks, of one that Share gave.
func (s *State) With(chunks map[uint64]*Chunk) *State {
	n := *s // what it counts for itself is each one's own
	n.Chunks, n.perType = chunks, nil
	return &n
}

// Continue makes a state to continue with of one that With gave.
func (s *State) Continue() {
	s.Codes = s.Codes.copied()
	s.id = newOwner()
}

// copied gives a dictionary with the same numbers, to add to.
func (c *Codes) copied() *Codes {
	n := &Codes{limit: c.limit}
	for i, t := range c.Type {
		n.Of(t, c.Length[i], c.Words[i])
	}
	copy(n.Count, c.Count)
	return n
}

// Written says whether the chunk was written to at time stamp of its state (State.Stamp) or later.
func (c *Chunk) Written(stamp uint32) bool { return c.stamp >= stamp }

// Borrow gives c the columns of o, a chunk of the same objects of state of. c keeps its own samples and owner.
func (c *Chunk) Borrow(o *Chunk, of *State) {
	lent := o.lent || o.owner != of.id
	*c = Chunk{Off: o.Off, Code: o.Code, Birth: o.Birth, Same: o.Same, Samples: c.Samples, owner: c.owner, lent: lent}
}
