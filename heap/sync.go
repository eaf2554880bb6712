package heap

import (
	stdcmp "cmp"
	"errors"
	"slices"
	"sort"

	"github.com/heapcam/heapcam/trace"
)

// errLater says that the collection at hand is done before this block is read.
var errLater = errors.New("not of this collection")

// sync compares the listing with the state, if that was known, and adopts it.
func (r *Replayer) sync(b trace.Block) error {
	s, err := trace.DecodeSync(b)
	if err != nil {
		return err
	}
	if r.pending != nil && s.GC != r.pending.GC {
		return errLater
	}
	if r.gc != 0 && s.GC != r.gc { // the epoch that it belongs to is missing
		r.Known, r.was = false, false
		if s.GC > r.gc {
			r.lost = max(r.lost, s.GC-r.gc)
		}
	}
	c := r.pending
	if c != nil {
		c.Synced, c.SyncProbe = true, s.Probe
	}
	if len(s.Lists) == 0 { // depth samples: sites only
		r.adoptSamples(s, nil)
		return nil
	}
	var next *State
	var at []listed
	if r.State.counted {
		if at, err = r.recount(s); err != nil {
			return err
		}
		next = r.State
	} else {
		old := r.State
		if next, err = r.list(s); err != nil {
			return err
		}
		switch {
		case r.Known:
			r.Compared = append(r.Compared, r.compare(s, old, next))
		case r.was && c != nil:
			r.identify(s, c, old, next)
		}
	}
	if n, b := uint64(next.n), next.Bytes(); n != s.Objects || b != s.Bytes {
		r.fault("sync point at collection %d: total says %d objects, %d bytes; listed are %d, %d", s.GC, s.Objects, s.Bytes, n, b)
	}
	r.State, r.Known, r.gc = next, true, s.GC
	r.edenIn = s.Flags&trace.SyncEdenListed != 0
	r.Uncompacted = r.Uncompacted || s.Flags&trace.SyncUncompacted != 0
	r.swept, r.was = false, false
	r.regions = s.Regions
	r.adoptSamples(s, at)
	if c == nil && r.OnListing != nil {
		r.OnListing(s.GC)
	}
	return nil
}

// list makes a state of a listing. It shares the codes and columns of the one before, which counts no more afterwards. Segments come in the order of
// the collector's spaces; a chunk at the edge of two gets both.
func (r *Replayer) list(s *trace.Sync) (*State, error) {
	old := r.State
	for _, c := range old.chunks {
		old.tidy(c)
	}
	old.renumber()
	next := newState()
	codes := old.codes
	next.codes, next.marks, next.pages = codes, old.marks, old.pages
	had := codes.count
	codes.count = make([]uint64, len(had), cap(had))
	birth := uint32(s.GC)
	if r.JVM.Flags&trace.JVMAtStart == 0 || s.GC > 1 {
		birth |= atLeast // whoever knows better says so afterwards
	}
	var k uint64
	off, code := make([]uint16, 0, chunkWords/2), make([]uint32, 0, chunkWords/2)
	flush := func() {
		if len(off) == 0 {
			return
		}
		c, o := next.chunks[k], old.chunks[k]
		switch {
		case c != nil:
			c.off, c.code, c.lent = append(slices.Clip(c.off), off...), append(slices.Clip(c.code), code...), false
		case o != nil && slices.Equal(o.off, off) && slices.Equal(o.code, code): // mostly: what has not changed does not stand there twice
			c = &chunk{same: birth, off: o.off, code: o.code, owner: next.id, lent: o.lent || o.owner != old.id}
			next.chunks[k] = c
		default:
			c = &chunk{same: birth, off: slices.Clone(off), code: slices.Clone(code), owner: next.id}
			next.chunks[k] = c
		}
		c.dirty = c.dirty || !ascending(c.off)
		for _, n := range code {
			codes.count[n]++
		}
		next.n += len(off)
		off, code = off[:0], code[:0]
	}
	for _, blob := range s.Lists {
		l := trace.NewListTokens(blob, r.table)
		for l.Next() {
			if l.Kind != trace.ListObject {
				continue
			}
			if at := l.Addr >> chunkShift; at != k {
				flush()
				k = at
			}
			off = append(off, uint16(l.Addr&(chunkWords-1)))
			code = append(code, codes.of(l.Type, l.Length, l.Words))
		}
		if err := l.Err(); err != nil {
			codes.count = append(had, make([]uint64, len(codes.typ)-len(had))...)
			return nil, err
		}
		flush()
	}
	for _, c := range next.chunks {
		next.tidy(c)
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

// both gives the numbers of the chunks that either state has, in order.
func both(a, b *State) []uint64 {
	ks := make([]uint64, 0, len(b.chunks))
	for k := range b.chunks {
		ks = append(ks, k)
	}
	for k := range a.chunks {
		if b.chunks[k] == nil {
			ks = append(ks, k)
		}
	}
	slices.Sort(ks)
	return ks
}

// ranges are stretches of words, ascending and apart.
type ranges []trace.Range

func (g ranges) has(addr uint64) bool {
	i := sort.Search(len(g), func(i int) bool { return g[i].Start > addr })
	return i > 0 && addr-g[i-1].Start < g[i-1].Words
}

// where gives the stretches of a kind of space at a sync point: one, or on G1 the regions of that kind.
func (r *Replayer) where(kind uint64, spaces []trace.Space, regions []trace.RegionRun) ranges {
	if r.JVM.RegionWords > 0 {
		return r.regionsOf(kind, regions)
	}
	var g ranges
	for _, sp := range spaces {
		if sp.Kind == kind && sp.End > sp.Bottom {
			g = append(g, trace.Range{Start: sp.Bottom, Words: sp.End - sp.Bottom})
		}
	}
	slices.SortFunc(g, func(a, b trace.Range) int { return stdcmp.Compare(a.Start, b.Start) })
	return g
}

func (r *Replayer) regionsOf(kind uint64, regions []trace.RegionRun) ranges {
	var g ranges
	at, words := uint64(0), r.JVM.RegionWords
	for _, run := range regions {
		if run.Run > (trace.MaxAddr-at)/words {
			break
		}
		if n := run.Run * words; run.Kind == kind && n > 0 {
			g = append(g, trace.Range{Start: at, Words: n})
		}
		at += run.Run * words
	}
	return g
}

// adoptSamples takes over the samples that a sync point says live, and what they say of their objects. at is what the listing says of their places
// if r only counts; nil: each stands where it is said to.
func (r *Replayer) adoptSamples(s *trace.Sync, at []listed) {
	live := make(map[uint64]*Sample, len(s.Samples))
	for _, l := range s.Samples {
		x, waits := r.Live[l.ID], false
		if x == nil {
			x = r.fresh.find(l.ID)
			waits = x != nil
		}
		if x == nil {
			x = &Sample{Sample: trace.Sample{ID: l.ID, Thread: l.Thread, Size: l.Size, Interval: l.Interval, Frame: r.Site(l.Frame)}, Birth: l.Birth,
				Weight: trace.Weight(l.Size, l.Interval)}
		}
		if l.Birth != 0 { // the probe knows it even if epochs were lost
			x.Birth = l.Birth
		}
		if !r.sampleAt(at, &l, x) && len(s.Lists) > 0 {
			// A walk may name samples of eden, whose objects are in no list: they enter the state later, or never.
			if !waits {
				r.fresh.add(x)
			}
			continue
		}
		if waits {
			y := *x
			x = &y
		}
		live[l.ID] = x
	}
	r.sampled = 0
	for id, x := range live {
		r.sampled += x.Size
		if r.Live[id] == nil {
			r.Came = append(r.Came, x)
		}
	}
	for id, x := range r.Live {
		if live[id] == nil {
			r.Went = append(r.Went, x)
		}
	}
	slices.SortFunc(r.Came, func(a, b *Sample) int { return stdcmp.Compare(a.ID, b.ID) })
	r.Live = live
}

// sampleAt attaches x, which l tells of, to what stands at its address, and gives it the type of that if it has none; false: nothing stands there.
func (r *Replayer) sampleAt(at []listed, l *trace.LiveSample, x *Sample) bool {
	if !r.State.counted {
		here := r.State.setSample(l.Addr, l.ID, x.Birth)
		if here && x.Type == 0 {
			c, i, _ := r.State.find(l.Addr)
			x.Type = uint64(r.State.codes.typ[c.code[i]])
		}
		return here
	}
	if at == nil {
		return true
	}
	i, _ := slices.BinarySearchFunc(at, l.Addr, func(a listed, addr uint64) int { return stdcmp.Compare(a.addr, addr) })
	if i == len(at) || at[i].addr != l.Addr || !at[i].here {
		return false
	}
	if x.Type == 0 {
		x.Type = uint64(at[i].typ)
	}
	return true
}

func (r *Replayer) isFiller(t uint32) bool { return r.Types[uint64(t)].Flags&trace.TypeFiller != 0 }

// TypeName is the type's name as Class.getTypeName gives it, hidden classes without the parts that change from run to run.
func (r *Replayer) TypeName(t uint32) string {
	ty, ok := r.Types[uint64(t)]
	if !ok {
		return "(unknown class)"
	}
	return ty.Pretty()
}
