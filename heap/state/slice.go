package state

import (
	"slices"

	"github.com/heapcam/heapcam/trace"
)

// Cut takes what is in the ranges out of s, and gives it. Both share a dictionary, whose counts are those of s.
func (s *State) Cut(ranges []trace.Range) *State {
	out := s.Split(ranges)
	for _, c := range out.Chunks {
		for _, code := range c.Code {
			s.Codes.Count[code]--
		}
	}
	return out
}

// Split is Cut, but what it takes out counts as before.
func (s *State) Split(ranges []trace.Range) *State {
	out := &State{Counts: Counts{Codes: s.Codes}, Chunks: map[uint64]*Chunk{}, Marks: s.Marks, id: newOwner()}
	for _, r := range ranges {
		for _, k := range s.Keys(nil, r.Start, r.Start+r.Words) {
			c := s.Chunks[k]
			s.Tidy(c)
			i, j := c.within(k<<ChunkShift, r)
			if i == j {
				continue
			}
			part := c.part(i, j)
			if have := out.Chunks[k]; have != nil {
				have.join(part)
			} else {
				part.owner = out.id
				out.Chunks[k] = part
			}
			s.n -= j - i
			out.n += j - i
			s.cut(k, c, i, j)
		}
	}
	for _, c := range out.Chunks {
		out.Tidy(c)
	}
	return out
}

// Last gives address and size, in words, of the last object in a range of words.
func (s *State) Last(r trace.Range) (addr, words uint64, ok bool) {
	for k, c := range s.Chunks { // a range may be larger than all chunks
		base := k << ChunkShift
		if r.Words == 0 || base >= r.Start+r.Words || base+ChunkWords <= r.Start || ok && base < addr {
			continue
		}
		if i, j := c.within(base, r); i < j {
			addr, words, ok = base|uint64(c.Off[j-1]), s.Codes.Words[c.Code[j-1]], true
		}
	}
	return addr, words, ok
}

// within gives the indexes of the chunk's objects that are in r; base is where the chunk begins.
func (c *Chunk) within(base uint64, r trace.Range) (i, j int) {
	j = len(c.Off)
	if base < r.Start {
		i, _ = slices.BinarySearch(c.Off, uint16(r.Start-base))
	}
	if r.Start+r.Words-base < ChunkWords {
		j, _ = slices.BinarySearch(c.Off, uint16(r.Start+r.Words-base))
	}
	return i, j
}

// part copies the objects i to j-1 of a tidy chunk.
func (c *Chunk) part(i, j int) *Chunk {
	p := &Chunk{Off: slices.Clone(c.Off[i:j]), Code: slices.Clone(c.Code[i:j]), Same: c.Same}
	if c.Birth != nil {
		p.Birth = slices.Clone(c.Birth[i:j])
	}
	for _, x := range c.Samples {
		if x.Off >= p.Off[0] && x.Off <= p.Off[j-i-1] {
			p.Samples = append(p.Samples, x)
		}
	}
	return p
}

// join adds the objects of o, which are at other addresses.
func (c *Chunk) join(o *Chunk) {
	if len(c.Off) == 0 {
		c.Same = o.Same
	}
	if c.Birth != nil || o.Birth != nil || c.Same != o.Same {
		c.Spread()
		for i := range o.Off {
			c.Birth = append(c.Birth, o.Born(i))
		}
	}
	c.dirty = c.dirty || len(c.Off) > 0 && c.Off[len(c.Off)-1] >= o.Off[0]
	c.loose = c.loose || len(c.Samples) > 0 && len(o.Samples) > 0
	c.Off, c.Code = append(c.Off, o.Off...), append(c.Code, o.Code...)
	c.Samples = append(c.Samples, o.Samples...)
}

// Part makes a state of lists, a part of a listing, and gives the bytes of its objects. They have that birth, and count
// in the dictionary that it shares with s. After an error neither is of use.
func (s *State) Part(lists [][]byte, sizes *trace.TypeTable, birth uint32) (out *State, bytes uint64, err error) {
	out = &State{Counts: Counts{Codes: s.Codes}, Chunks: map[uint64]*Chunk{}, Marks: s.Marks, id: newOwner()}
	for _, blob := range lists {
		l := trace.NewListTokens(blob, sizes)
		for l.Next() {
			if l.Kind == trace.ListObject {
				out.put(l.Addr, s.Codes.Of(l.Type, l.Length, l.Words), birth)
				bytes += 8 * l.Words
			}
		}
		if err := l.Err(); err != nil {
			return nil, 0, err
		}
	}
	for _, c := range out.Chunks {
		out.Tidy(c)
	}
	return out, bytes, nil
}

// Join puts the objects of part, which count already, into s. They are at other addresses than those of s. samples are
// theirs before, by address.
func (s *State) Join(part *State, samples map[uint64]uint64) {
	s.n += part.n
	for k, o := range part.Chunks {
		if len(o.Off) == 0 {
			continue
		}
		if c := s.Chunks[k]; c != nil {
			c = s.Own(k, c)
			c.join(o)
			s.Tidy(c)
			continue
		}
		o.owner, o.stamp = s.id, s.stamp
		s.Chunks[k] = o
	}
	for addr, id := range samples {
		if c, _, ok := s.find(addr); ok {
			s.ownSamples(addr>>ChunkShift, c).mark(uint16(addr&(ChunkWords-1)), id)
		}
	}
}

// EachMark calls f for each sample that is on an object.
func (s *State) EachMark(f func(addr, id uint64)) {
	for k, c := range s.Chunks {
		for _, x := range c.Samples {
			f(k<<ChunkShift|uint64(x.Off), x.ID)
		}
	}
}

// At gives the object at addr; false if there is none.
func (s *State) At(addr uint64) (Object, bool) {
	c, i, ok := s.find(addr)
	if !ok {
		return Object{}, false
	}
	s.Tidy(c)
	return s.at(addr>>ChunkShift, c, i), true
}

// Sampled gives the samples on the objects of s, by address.
func (s *State) Sampled() map[uint64]uint64 {
	out := map[uint64]uint64{}
	for k, c := range s.Chunks {
		for _, x := range c.Samples {
			out[k<<ChunkShift|uint64(x.Off)] = x.ID
		}
	}
	return out
}
