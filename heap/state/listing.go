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
	x := lister{old: old, next: next, birth: uint32(s.GC),
		off: make([]uint16, 0, ChunkWords/2), code: make([]uint32, 0, ChunkWords/2)}
	if uncertain {
		x.birth |= AtLeastMark // identity (package match) may prove the birth afterwards
	}
	for _, blob := range s.Lists {
		if err := x.list(blob, sizes); err != nil {
			codes.Count = append(had, make([]uint64, len(codes.Type)-len(had))...)
			return nil, err
		}
	}
	for _, c := range next.Chunks {
		next.Tidy(c)
	}
	return next, nil
}

// lister makes a state of a listing.
type lister struct {
	old, next *State
	birth     uint32

	k    uint64 // the chunk in hand, and its columns
	off  []uint16
	code []uint32
}

// list takes in a blob of list tokens.
func (x *lister) list(blob []byte, sizes *trace.TypeTable) error {
	codes, inst := x.next.Codes, x.next.Codes.inst
	var batch [256]trace.Listed
	l := trace.NewListTokens(blob, sizes)
	for {
		n := l.Objects(batch[:])
		for i := range batch[:n] {
			o := &batch[i]
			if at := o.Addr >> ChunkShift; at != x.k {
				x.flush()
				x.k = at
			}
			c := uint32(0)
			if o.Length == 0 && uint64(o.Type) < uint64(len(inst)) {
				c = inst[o.Type]
			}
			if c == 0 {
				c = codes.Of(o.Type, uint64(o.Length), uint64(o.Words)) + 1
				inst = codes.inst
			}
			x.off, x.code = append(x.off, uint16(o.Addr&(ChunkWords-1))), append(x.code, c-1)
		}
		if n == len(batch) {
			continue
		}
		if !l.Next() {
			break
		}
		if l.Kind == trace.ListObject {
			if at := l.Addr >> ChunkShift; at != x.k {
				x.flush()
				x.k = at
			}
			x.off = append(x.off, uint16(l.Addr&(ChunkWords-1)))
			x.code = append(x.code, codes.Of(l.Type, l.Length, l.Words))
			inst = codes.inst
		}
	}
	x.flush()
	return l.Err()
}

// flush puts the columns in hand into the state.
func (x *lister) flush() {
	off, code := x.off, x.code
	if len(off) == 0 {
		return
	}
	c, o, next := x.next.Chunks[x.k], x.old.Chunks[x.k], x.next
	switch {
	case c != nil:
		c.Off, c.Code, c.lent = append(slices.Clip(c.Off), off...), append(slices.Clip(c.Code), code...), false
	// mostly: columns that have not changed are shared
	case o != nil && slices.Equal(o.Off, off) && slices.Equal(o.Code, code):
		c = &Chunk{Same: x.birth, Off: o.Off, Code: o.Code, owner: next.id, lent: o.lent || o.owner != x.old.id}
		next.Chunks[x.k] = c
	default:
		c = &Chunk{Same: x.birth, Off: slices.Clone(off), Code: slices.Clone(code), owner: next.id}
		next.Chunks[x.k] = c
	}
	c.dirty = c.dirty || !ascending(c.Off)
	for _, n := range code {
		next.Codes.Count[n]++
	}
	next.n += len(off)
	x.off, x.code = off[:0], code[:0]
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
