// Package statetest makes states for tests.
package statetest

import "github.com/heapcam/heapcam/heap/state"

// Put adds an object to a state, behind those of its chunk. State.Objects does not count it.
func Put(s *state.State, o state.Object) {
	k := o.Addr >> state.ChunkShift
	c := s.Chunks[k]
	if c == nil {
		c = &state.Chunk{}
		s.Chunks[k] = c
	}
	c = s.Own(k, c)
	code, birth := s.Codes.Of(o.Type, o.Length, o.Words), o.Birth
	if o.AtLeast {
		birth |= state.AtLeastMark
	}
	s.Codes.Count[code]++
	off := uint16(o.Addr & (state.ChunkWords - 1))
	c.Spread()
	c.Off, c.Code, c.Birth = append(c.Off, off), append(c.Code, code), append(c.Birth, birth)
	if o.Sample != 0 {
		c.Samples = append(c.Samples, state.SampleAt{Off: off, ID: o.Sample})
	}
}
