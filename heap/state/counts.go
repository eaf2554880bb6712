package state

import "slices"

// Count is objects and bytes.
type Count struct{ Objects, Bytes uint64 }

// Counts is how many objects of each type and length there are.
type Counts struct {
	Codes *Codes

	n       int
	perType []Count
}

// Objects is the number of objects .
func (s *Counts) Objects() int { return s.n }

// Bytes is their sum.
func (s *Counts) Bytes() uint64 {
	sum := uint64(0)
	for i, n := range s.Codes.Count {
		sum += n * s.Codes.Words[i] * 8
	}
	return sum
}

// PerType gives objects and bytes by type id, of ids below DenseTypes. It stays the state's, until the next call.
func (s *Counts) PerType() []Count {
	clear(s.perType)
	for i, n := range s.Codes.Count {
		t := s.Codes.Type[i]
		if n == 0 || t >= DenseTypes {
			continue
		}
		s.perType = RoomFor(s.perType, t)
		s.perType[t].Objects += n
		s.perType[t].Bytes += n * s.Codes.Words[i] * 8
	}
	return s.perType
}

// RoomFor gives counts by type, grown so that they have a row of type t, which is below DenseTypes.
func RoomFor(counts []Count, t uint32) []Count {
	if grow := int(t) + 1 - len(counts); grow > 0 {
		counts = append(counts, make([]Count, grow)...)
	}
	return counts
}

// Lengths calls f for each type and length of which there are objects, and says how many; what has no length has 0.
func (s *Counts) Lengths(f func(typ uint32, length, objects uint64)) {
	for i, n := range s.Codes.Count {
		if n > 0 {
			f(s.Codes.Type[i], s.Codes.Length[i], n)
		}
	}
}

// clone gives counts that do not change with s.
func (s *Counts) clone() Counts {
	c := *s.Codes
	c.Count, c.inst, c.slots = slices.Clone(c.Count), nil, nil
	// What is added to the dictionary lies behind these ends.
	c.Type, c.Length, c.Words = slices.Clip(c.Type), slices.Clip(c.Length), slices.Clip(c.Words)
	return Counts{Codes: &c, n: s.n}
}
