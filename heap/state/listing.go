package state

import (
	"slices"

	"github.com/heapcam/heapcam/trace"
)

// Listing makes a state of the listing of a sync point. It shares dictionary and columns with old, the state before,
// whose counts are of no use afterwards unless there is an error. uncertain says that there may be objects from before
// the recording. Segments come in the order of the collector's spaces; a chunk at the edge of two spaces gets objects
// of both.
func (old *State) Listing(s *trace.Sync, sizes *trace.TypeTable, uncertain bool) (*State, error) {
	for _, c := range old.Chunks {
		old.Tidy(c)
	}
	old.renumber()
	next := New()
	codes := old.Codes
	next.Codes, next.Marks = codes, old.Marks
	had := codes.Count
	codes.Count = make([]uint64, len(had), cap(had))
	birth := uint32(s.GC)
	if uncertain {
		birth |= AtLeastMark // identity (package match) may prove the birth afterwards
	}
	var k uint64
	off, code := make([]uint16, 0, ChunkWords/2), make([]uint32, 0, ChunkWords/2)
	flush := func() {
		if len(off) == 0 {
			return
		}
		c, o := next.Chunks[k], old.Chunks[k]
		switch {
		case c != nil:
			c.Off, c.Code, c.lent = append(slices.Clip(c.Off), off...), append(slices.Clip(c.Code), code...), false
		// mostly: columns that have not changed are shared
		case o != nil && slices.Equal(o.Off, off) && slices.Equal(o.Code, code):
			c = &Chunk{Same: birth, Off: o.Off, Code: o.Code, owner: next.id, lent: o.lent || o.owner != old.id}
			next.Chunks[k] = c
		default:
			c = &Chunk{Same: birth, Off: slices.Clone(off), Code: slices.Clone(code), owner: next.id}
			next.Chunks[k] = c
		}
		c.dirty = c.dirty || !ascending(c.Off)
		for _, n := range code {
			codes.Count[n]++
		}
		next.n += len(off)
		off, code = off[:0], code[:0]
	}
	for _, blob := range s.Lists {
		l := trace.NewListTokens(blob, sizes)
		for l.Next() {
			if l.Kind != trace.ListObject {
				continue
			}
			if at := l.Addr >> ChunkShift; at != k {
				flush()
				k = at
			}
			off = append(off, uint16(l.Addr&(ChunkWords-1)))
			code = append(code, codes.Of(l.Type, l.Length, l.Words))
		}
		if err := l.Err(); err != nil {
			codes.Count = append(had, make([]uint64, len(codes.Type)-len(had))...)
			return nil, err
		}
		flush()
	}
	for _, c := range next.Chunks {
		next.Tidy(c)
	}
	return next, nil
}

// ascending says whether each is above the one before.
func ascending(off []uint16) bool {
	for i := 1; i < len(off); i++ {
		if off[i] <= off[i-1] {
			return false
		}
	}
	return true
}
