package state

import (
	"slices"
	"sort"

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

	arrays [recentArrays]recent // by a hash of type and length
}

// recentArrays is how many codes of arrays a lister keeps in a small table; a power of two.
const recentArrays = 4096

// recent is an array's code, plus 1.
type recent struct{ typ, length, code uint32 }

// list takes in a blob of list tokens.
func (x *lister) list(blob []byte, sizes *trace.TypeTable) error {
	var batch [256]trace.Listed
	l := trace.NewListTokens(blob, sizes)
	for {
		n := l.Objects(batch[:])
		for rest := batch[:n]; len(rest) > 0; {
			k := rest[0].Addr >> ChunkShift
			m := len(rest)
			if rest[m-1].Addr>>ChunkShift != k { // addresses ascend
				m = sort.Search(m, func(i int) bool { return rest[i].Addr>>ChunkShift != k })
			}
			x.begin(k)
			x.run(rest[:m])
			rest = rest[m:]
		}
		if n == len(batch) {
			continue
		}
		if !l.Next() {
			break
		}
		if l.Kind == trace.ListObject {
			x.begin(l.Addr >> ChunkShift)
			x.off = append(x.off, uint16(l.Addr&(ChunkWords-1)))
			x.code = append(x.code, x.next.Codes.Of(l.Type, l.Length, l.Words))
		}
	}
	x.flush()
	return l.Err()
}

// begin makes chunk k the one in hand.
func (x *lister) begin(k uint64) {
	if k != x.k {
		x.flush()
		x.k = k
	}
}

// run adds objects to the chunk in hand.
func (x *lister) run(objs []trace.Listed) {
	inst, n := x.next.Codes.inst, len(x.off)
	x.off, x.code = slices.Grow(x.off, len(objs))[:n+len(objs)], slices.Grow(x.code, len(objs))[:n+len(objs)]
	off, code := x.off[n:], x.code[n:]
	for i := range objs {
		o, c := &objs[i], uint32(0)
		if o.Length == 0 {
			if uint64(o.Type) < uint64(len(inst)) {
				c = inst[o.Type]
			}
		} else if r := &x.arrays[hash(o.Type, uint64(o.Length))%recentArrays]; r.typ == o.Type && r.length == o.Length {
			c = r.code
		}
		if c == 0 {
			c = x.learn(o)
			inst = x.next.Codes.inst
		}
		off[i], code[i] = uint16(o.Addr&(ChunkWords-1)), c-1
	}
}

// learn gives the code of an object, plus 1, and keeps it in the small table if it is an array.
func (x *lister) learn(o *trace.Listed) uint32 {
	c := x.next.Codes.Of(o.Type, uint64(o.Length), uint64(o.Words)) + 1
	if o.Length != 0 {
		x.arrays[hash(o.Type, uint64(o.Length))%recentArrays] = recent{o.Type, o.Length, c}
	}
	return c
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
