package heap

import (
	"io"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/heapcam/heapcam/trace"
)

// A replayer that goes on shares its chunks with the states that were kept of it: who is not the owner of a chunk copies it before writing, so
// that a kept state takes no more than what has changed since the one before.

var owners atomic.Uint32

func newOwner() uint32 { return owners.Add(1) }

// own gives the chunk of number k to write to.
func (s *State) own(k uint64, c *chunk) *chunk {
	if c.owner == s.id && !c.lent {
		return c
	}
	n := *c
	n.off, n.code, n.birth, n.lent = slices.Clone(c.off), slices.Clone(c.code), slices.Clone(c.birth), false
	if c.owner != s.id {
		n.samples, n.owner = slices.Clone(c.samples), s.id
	}
	return s.replace(k, &n)
}

// ownSamples gives the chunk of number k to put samples on.
func (s *State) ownSamples(k uint64, c *chunk) *chunk {
	if c.owner == s.id {
		return c
	}
	n := *c
	n.samples, n.owner, n.lent = slices.Clone(c.samples), s.id, true
	return s.replace(k, &n)
}

func (s *State) replace(k uint64, c *chunk) *chunk {
	s.chunks[k] = c
	if n := &s.near[nearSlot(k)]; n.k == k {
		n.c = nil
	}
	return c
}

// bytes is roughly what the chunk takes.
func (c *chunk) bytes() int {
	n := 16*cap(c.samples) + 160
	if !c.lent {
		n += 2*cap(c.off) + 4*cap(c.code) + 4*cap(c.birth)
	}
	return n
}

// beside is roughly what a kept state takes beside its chunks.
func (s *State) beside() int { return 8*len(s.codes.count) + 32*len(s.chunks) }

// Kept is the state after a collection, as Keep gave it. It is only read.
type Kept struct {
	C *Collection
	// New is what it takes beside what was kept before, in bytes, roughly.
	New int
	r   Replayer // Live and definitions are missing
}

// Keep gives what stands after c, the newest collection, whose state is known. What the replayer does from then on does not change it.
func (r *Replayer) Keep(c *Collection) *Kept {
	s := r.State
	k := &Kept{C: c, r: *r, New: s.beside()}
	for _, c := range s.chunks {
		s.tidy(c)
		if c.owner == s.id {
			k.New += c.bytes()
		}
	}
	k.r.src, k.r.back, k.r.pending, k.r.moved, k.r.fresh, k.r.Took, k.r.Came, k.r.Went = nil, nil, nil, moved{}, fresh{}, nil, nil, nil
	k.r.State = s.share()
	s.id = newOwner()
	clear(s.near[:])
	return k
}

// share gives a state of the same objects, that owns nothing.
func (s *State) share() *State {
	n := &State{chunks: maps.Clone(s.chunks), n: s.n, marks: s.marks, id: newOwner()}
	c := *s.codes
	c.count, c.inst, c.slots = slices.Clone(c.count), nil, nil
	// What the other adds to the dictionary lies behind these ends.
	c.typ, c.length, c.words = slices.Clip(c.typ), slices.Clip(c.length), slices.Clip(c.words)
	n.codes = &c
	return n
}

// Held is what all of kept take together, in bytes, roughly.
func Held(kept []*Kept) int {
	seen, sum := map[*chunk]bool{}, 0
	for _, k := range kept {
		sum += k.r.State.beside()
		for _, c := range k.r.State.chunks {
			if !seen[c] {
				seen[c] = true
				sum += c.bytes()
			}
		}
	}
	return sum
}

// Names are the definitions of a recording and the times of its collections, as far as it has been read.
type Names struct{ of Replayer }

// Names gives what is defined so far; what the replayer reads from then on does not change it.
func (r *Replayer) Names() *Names {
	return &Names{Replayer{Types: maps.Clone(r.Types), Loaders: maps.Clone(r.Loaders), Methods: maps.Clone(r.Methods), Frames: maps.Clone(r.Frames),
		Threads: maps.Clone(r.Threads), Ends: maps.Clone(r.Ends)}}
}

// Replayer gives a replayer that stands at the kept state: for who looks at it. live are the samples that live then; names may be newer than the
// state. It has nothing to read: Next gives io.EOF.
func (k *Kept) Replayer(names *Names, live map[uint64]*Sample) *Replayer {
	r, n := k.r, &names.of
	st := *r.State // what it counts for itself is each one's own
	r.State, r.Live, r.src = &st, live, ended{}
	r.Types, r.Loaders, r.Methods, r.Frames, r.Threads, r.Ends = n.Types, n.Loaders, n.Methods, n.Frames, n.Threads, n.Ends
	return &r
}

// Resume is Replayer for who goes on: src gives the blocks of the recording from any point not after the collection, and what is known already is left
// out. names and live are its own then. Not from a collection that left eden as it was: samples wait then for the next.
func (k *Kept) Resume(names *Names, live map[uint64]*Sample, src BlockSource) *Replayer {
	r := k.Replayer(names, live)
	r.State.codes = r.State.codes.copied()
	r.State.chunks = maps.Clone(r.State.chunks)
	r.State.id = newOwner()
	r.table = trace.NewTypeTable(8)
	r.table.SetAlign(r.JVM.Align)
	if err := r.table.DefineAll(slices.Collect(maps.Values(r.Types))); err != nil {
		r.fault("%v", err)
	}
	r.src = &after{src: src, gc: k.C.GC}
	return r
}

// copied gives a dictionary with the same numbers, to add to.
func (c *codes) copied() *codes {
	n := &codes{limit: c.limit}
	for i, t := range c.typ {
		n.of(t, c.length[i], c.words[i])
	}
	copy(n.count, c.count)
	return n
}

// after leaves out what a replayer that stands at a collection has had: all up to its epoch and sync point, but for definitions.
type after struct {
	src  BlockSource
	gc   uint64
	at   bool // the epoch of the collection has come
	past bool // something after it has
}

func (a *after) Next() (trace.Block, error) {
	for {
		b, err := a.src.Next()
		if a.past || err == io.EOF {
			return b, err
		}
		if err != nil {
			continue // damage before it was told of by who read it first
		}
		switch b.Kind {
		case trace.KindEpoch:
			e, err := trace.DecodeEpoch(b)
			if err == nil && e.Pause.GC <= a.gc {
				a.at = e.Pause.GC == a.gc
				continue
			}
			a.past = true
		case trace.KindSync: // one of a later collection stands for a lost epoch
			s, err := trace.DecodeSync(b)
			if err == nil && s.GC <= a.gc {
				continue
			}
			a.past = true
		case trace.KindSamples, trace.KindGap:
			if !a.at {
				continue
			}
		}
		return b, nil
	}
}

type ended struct{}

func (ended) Next() (trace.Block, error) { return trace.Block{}, io.EOF }
