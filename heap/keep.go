package heap

import (
	"io"
	"maps"
	"slices"
	"sync"
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
		c.stamp = s.stamp
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
		c.stamp = s.stamp
		return c
	}
	n := *c
	n.samples, n.owner, n.lent = slices.Clone(c.samples), s.id, true
	return s.replace(k, &n)
}

func (s *State) replace(k uint64, c *chunk) *chunk {
	c.stamp = s.stamp
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

// beside is roughly what a kept state takes beside its chunks and the pages that are its own.
func (k *Kept) beside() int { return 8*len(k.r.State.codes.count) + 24*(len(k.pages)+len(k.r.sites)) }

// Kept is the state after a collection, as Keep gave it. It is only read.
type Kept struct {
	C *Collection
	// New is what it takes beside what was kept before, in bytes, roughly.
	New   int
	r     Replayer // Live and definitions are missing, and the state's chunks
	pages map[uint64]*page
}

// Keep gives what stands after c, the newest collection, whose state is known. What the replayer does from then on does not change it. before is what
// was kept before it, or nil.
func (r *Replayer) Keep(c *Collection, before *Kept) *Kept {
	s := r.State
	k := &Kept{C: c, r: *r}
	for _, c := range s.chunks {
		s.tidy(c)
		if c.owner == s.id {
			k.New += c.bytes()
		}
	}
	k.strip()
	var were map[uint64]*page
	if before != nil {
		were = before.pages
	}
	fresh := 0
	k.pages, fresh = s.paged(were, uint32(r.First))
	k.r.State = s.share()
	k.New += k.beside() + fresh
	s.id = newOwner()
	clear(s.near[:])
	return k
}

// Count is Keep of a state without its objects: only how many there are of each type and length (State.PerType, State.Lengths, and Fold by these).
func (r *Replayer) Count(c *Collection) *Kept {
	k := &Kept{C: c, r: *r}
	k.strip()
	k.r.State = r.State.share()
	k.New = k.beside()
	return k
}

// strip leaves out what the replayer needs to go on.
func (k *Kept) strip() {
	k.r.src, k.r.back, k.r.pending, k.r.moved, k.r.fresh, k.r.Took, k.r.Came, k.r.Went = nil, nil, nil, moved{}, fresh{}, nil, nil, nil
}

// share gives a state of the same objects, that owns nothing and has no chunks yet.
func (s *State) share() *State {
	n := &State{n: s.n, marks: s.marks, id: newOwner()}
	c := *s.codes
	c.count, c.inst, c.slots = slices.Clone(c.count), nil, nil
	// What the other adds to the dictionary lies behind these ends.
	c.typ, c.length, c.words = slices.Clip(c.typ), slices.Clip(c.length), slices.Clip(c.words)
	n.codes = &c
	return n
}

// Held is what all of kept take together, in bytes, roughly.
func Held(kept []*Kept) int {
	pages, seen, sum := map[*page]bool{}, map[*chunk]bool{}, 0
	for _, k := range kept {
		sum += k.beside()
		for _, p := range k.pages {
			if pages[p] {
				continue
			}
			pages[p] = true
			sum += p.bytes()
			for _, c := range p.chunks {
				if c != nil && !seen[c] {
					seen[c] = true
					sum += c.bytes()
				}
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
		Threads: maps.Clone(r.Threads), Ends: maps.Clone(r.Ends), stacks: maps.Clone(r.stacks), again: maps.Clone(r.again)}}
}

// Replayer gives a replayer that stands at the kept state: for who looks at it. lives are the samples of the recording; names may be newer than the
// state. It has nothing to read: Next gives io.EOF. Live is nil: Sample tells.
func (k *Kept) Replayer(names *Names, lives *Lives) *Replayer {
	r, n := k.r, &names.of
	st := *r.State // what it counts for itself is each one's own
	st.chunks, st.pages = unpaged(k.pages, len(k.pages)*pageChunks), k.pages
	r.State, r.Live, r.past, r.src = &st, nil, lives, ended{}
	r.Types, r.Loaders, r.Methods, r.Frames, r.Threads, r.Ends = n.Types, n.Loaders, n.Methods, n.Frames, n.Threads, n.Ends
	return &r
}

// Resume is Replayer for who goes on: src gives the blocks of the recording from any point not after the collection, and what is known already is left
// out. names are its own then. Not from a collection that left eden as it was: samples wait then for the next.
func (k *Kept) Resume(names *Names, lives *Lives, src BlockSource) *Replayer {
	r := k.Replayer(names, nil)
	r.Live, r.stacks, r.again = lives.after(k.C.GC), names.of.stacks, names.of.again
	r.State.codes = r.State.codes.copied()
	r.State.id = newOwner()
	r.table = trace.NewTypeTable(8)
	r.table.SetAlign(r.JVM.Align)
	if err := r.table.DefineAll(slices.Collect(maps.Values(r.Types))); err != nil {
		r.fault("%v", err)
	}
	r.src = &after{src: src, gc: k.C.GC}
	return r
}

// Lives are the samples of a recording, and after which collections each of them lived. It may be asked while it grows.
type Lives struct {
	mu   sync.RWMutex
	all  []life
	slot []int32 // 1 + place in all by id, open addressing; of two with one id the later

	living, standing int // of the newest collection; the latter of Places
}

// life is when a sample was alive: from a collection on, until another (0: to the end).
type life struct {
	s        *Sample
	from, to uint64
	birth    uint32 // that of the sample as it came
	placed   bool   // of Places: it stands where it should
}

// lived says whether the sample was alive after collection gc.
func (x *life) lived(gc uint64) bool { return x.from <= gc && (x.to == 0 || x.to > gc) }

// Follow takes in what the newest collection of r brought and took.
func (l *Lives) Follow(r *Replayer, gc uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range r.Came {
		if 2*len(l.all) >= len(l.slot) {
			l.slot = make([]int32, max(1024, 2*len(l.slot)))
			for i := range l.all {
				*l.find(l.all[i].s.ID) = int32(i + 1)
			}
		}
		l.all = append(l.all, life{s: s, from: gc, birth: uint32(min(s.Birth, atLeast))})
		l.living++
		*l.find(s.ID) = int32(len(l.all))
	}
	for _, s := range r.Went {
		if x := l.of(s.ID); x != nil && x.to == 0 {
			x.to = gc
			l.living--
			if x.placed {
				l.standing--
			}
		}
	}
}

// find gives the slot of an id, or the empty one that it takes.
func (l *Lives) find(id uint64) *int32 {
	mask := uint64(len(l.slot) - 1)
	for h := id * 0x9e3779b97f4a7c15 >> 20 & mask; ; h = (h + 1) & mask {
		if i := l.slot[h]; i == 0 || l.all[i-1].s.ID == id {
			return &l.slot[h]
		}
	}
}

func (l *Lives) of(id uint64) *life {
	if len(l.slot) == 0 {
		return nil
	}
	if i := *l.find(id); i != 0 {
		return &l.all[i-1]
	}
	return nil
}

// at gives the sample of that id if it lived after collection gc, nil if not. The caller holds mu.
func (l *Lives) at(id, gc uint64) *Sample {
	if x := l.of(id); x != nil && x.lived(gc) {
		return x.s
	}
	return nil
}

// after gives all that lived after collection gc.
func (l *Lives) after(gc uint64) map[uint64]*Sample {
	l.mu.RLock()
	defer l.mu.RUnlock()
	n := 0
	for i := range l.all {
		if x := &l.all[i]; x.lived(gc) {
			n++
		}
	}
	live := make(map[uint64]*Sample, n)
	for i := range l.all {
		if x := &l.all[i]; x.lived(gc) {
			live[x.s.ID] = x.s
		}
	}
	return live
}

// Sample gives the sample of that id if it is live: resolved and not known dead; nil if not.
func (r *Replayer) Sample(id uint64) *Sample {
	find, done := r.samples()
	defer done()
	return find(id)
}

// samples is Sample for who asks often. done ends it.
func (r *Replayer) samples() (find func(id uint64) *Sample, done func()) {
	l := r.past
	if l == nil {
		return func(id uint64) *Sample { return r.Live[id] }, func() {}
	}
	l.mu.RLock()
	return func(id uint64) *Sample { return l.at(id, r.gc) }, l.mu.RUnlock
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
