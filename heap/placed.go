package heap

import (
	"cmp"
	"slices"
)

// Places follows a replay that goes on and says, state by state, what Fold by sites needs of it (WantSamples), so that a state of which only the
// counts were kept (Replayer.Count) can be folded so as well: of each type how many objects have which birth, as far as such a fold tells births apart,
// and that the samples that live are those that stand in the state, each in an object of its own type, size and birth. Only chunks that have changed
// since the state before are looked at.
type Places struct {
	lives  *Lives
	chunks map[uint64]*placed
	born   map[bornKey]cell // objects of births other than the common one: after the first collection, without a mark
	odd    int              // samples that stand where they should not
}

// bornKey is a type and what of a birth is told apart, with the mark.
type bornKey struct{ typ, birth uint32 }

type bornCount struct {
	bornKey
	cell
}

// placed is what Places knows of a chunk.
type placed struct {
	c    *chunk
	born []bornCount
	here []int32 // samples that stand there, by place in Lives.all
	odd  int
	seen bool
}

// NewPlaces begins with the first state. l follows the same replay: Lives.Follow comes before Count.
func NewPlaces(l *Lives) *Places {
	return &Places{lives: l, chunks: map[uint64]*placed{}, born: map[bornKey]cell{}}
}

// Count is r.Count of a state that can be folded by sites (Kept.Sites), unless the samples that live are not those that stand in it.
func (p *Places) Count(r *Replayer, c *Collection) *Kept {
	known := p.follow(r)
	k := r.Count(c)
	if !known {
		return k
	}
	k.r.sites = make([]bornCount, 0, len(p.born))
	for at, n := range p.born {
		k.r.sites = append(k.r.sites, bornCount{at, n})
	}
	k.New = k.beside()
	return k
}

// Sites says whether what Count gave can be folded by sites.
func (k *Kept) Sites() bool { return k.r.sites != nil }

// follow takes in the chunks that are not as they were. Samples that move from one to the other are taken from all before they are put into any. It says whether the
// samples that live stand where they should.
func (p *Places) follow(r *Replayer) bool {
	s := r.State
	p.lives.mu.Lock()
	defer p.lives.mu.Unlock()
	var changed []uint64
	for at, c := range s.chunks {
		x := p.chunks[at]
		if x == nil {
			x = &placed{}
			p.chunks[at] = x
		}
		if x.seen = true; x.c != c || c.stamp == s.stamp {
			changed = append(changed, at)
			p.take(x)
		}
	}
	for at, x := range p.chunks {
		if !x.seen {
			p.take(x)
			delete(p.chunks, at)
		}
		x.seen = false
	}
	first := uint32(r.First)
	var t foldTable
	for _, at := range changed {
		c := s.chunks[at]
		s.tidy(c)
		x := p.chunks[at]
		x.c = c
		p.count(x, s.codes, first, &t)
		p.samples(x, s.codes)
	}
	s.stamp++
	clear(s.near[:])
	return p.odd == 0 && p.lives.standing == p.lives.living
}

// take takes out what a chunk had.
func (p *Places) take(x *placed) {
	for _, b := range x.born {
		n := p.born[b.bornKey]
		if n = (cell{n.objects - b.objects, n.words - b.words}); n.objects == 0 {
			delete(p.born, b.bornKey)
		} else {
			p.born[b.bornKey] = n
		}
	}
	for _, i := range x.here {
		if l := &p.lives.all[i]; l.placed {
			if l.placed = false; l.to == 0 {
				p.lives.standing--
			}
		}
	}
	p.odd -= x.odd
	x.born, x.here, x.odd = nil, x.here[:0], 0
}

// count counts the objects of a chunk whose birth is not the common one.
func (p *Places) count(x *placed, codes *codes, first uint32, t *foldTable) {
	c := x.c
	clear(t.keys)
	clear(t.count)
	t.used = 0
	see := func(code, b uint32) {
		n := t.at(uint64(codes.typ[code])<<32 | uint64(era(b&^atLeast, first)|b&atLeast))
		n.objects++
		n.words += codes.words[code]
	}
	common := func(b uint32) bool { return b > first && b < atLeast }
	if c.birth == nil {
		if len(c.off) == 0 || common(c.same) {
			return
		}
		for _, code := range c.code {
			see(code, c.same)
		}
	} else {
		for i, b := range c.birth {
			if !common(b) {
				see(c.code[i], b)
			}
		}
	}
	if t.used == 0 {
		return
	}
	x.born = make([]bornCount, 0, t.used)
	for i, key := range t.keys {
		if key != 0 {
			b := bornCount{bornKey{uint32((key - 1) >> 32), uint32(key - 1)}, t.count[i]}
			x.born = append(x.born, b)
			n := p.born[b.bornKey]
			p.born[b.bornKey] = cell{n.objects + b.objects, n.words + b.words}
		}
	}
}

// samples looks which samples stand in a chunk. The caller holds the lock of lives.
func (p *Places) samples(x *placed, codes *codes) {
	c, o := x.c, 0
	for i, sa := range c.samples {
		if i+1 < len(c.samples) && c.samples[i+1].off == sa.off { // the last of one offset counts
			continue
		}
		l := p.lives.of(sa.id)
		if l == nil || l.to != 0 {
			continue
		}
		for o < len(c.off) && c.off[o] < sa.off {
			o++
		}
		if o == len(c.off) || c.off[o] != sa.off {
			continue
		}
		code := c.code[o]
		if l.placed || l.birth >= atLeast || l.birth != c.born(o) || l.s.Type != uint64(codes.typ[code]) || l.s.Size != codes.words[code]*8 {
			p.odd++
			x.odd++
			continue
		}
		l.placed = true
		p.lives.standing++
		x.here = append(x.here, *p.lives.find(sa.id)-1)
	}
}

// era is Era where the first collection alone is told from later ones.
func era(birth, first uint32) uint32 {
	if birth <= first {
		return first
	}
	return first + 1
}

// siteCounts gives how many objects of each type and birth, as far as a fold by sites tells it apart, a state has of which Places.Count kept the counts.
func (r *Replayer) siteCounts() *foldTable {
	s, first := r.State, uint32(r.First)
	left := &foldTable{}
	of := func(typ, birth uint32) *cell { return left.at(uint64(typ)<<32 | uint64(birth)) }
	for code, n := range s.codes.count {
		if n > 0 {
			x := of(s.codes.typ[code], first+1)
			x.objects += n
			x.words += n * s.codes.words[code]
		}
	}
	for _, b := range r.sites {
		x := of(b.typ, first+1)
		x.objects -= b.objects
		x.words -= b.words
		*of(b.typ, b.birth) = b.cell
	}
	return left
}

// folded adds what is left of types and births to out.
func (t *foldTable) folded(out []Folded) []Folded {
	for i, key := range t.keys {
		if n := t.count[i]; key != 0 && n.objects > 0 {
			birth := uint32(key - 1)
			out = append(out, Folded{Type: uint32((key - 1) >> 32), Birth: birth &^ atLeast, AtLeast: birth&atLeast != 0, Space: -1, Objects: n.objects, Bytes: n.words * 8})
		}
	}
	inOrder(out)
	return out
}

// foldSites is Fold by sites of a state of which Places.Count kept the counts.
func (r *Replayer) foldSites() ([]Folded, error) {
	first, left := uint32(r.First), r.siteCounts()
	r.past.mu.RLock()
	defer r.past.mu.RUnlock()
	var t sampledTable
	n := 0
	for i := range r.past.all {
		if r.past.all[i].lived(r.gc) {
			n++
		}
	}
	t.size(n)
	for i := range r.past.all {
		x := &r.past.all[i]
		if !x.lived(r.gc) {
			continue
		}
		k := foldKey{uint32(x.s.Type), era(x.birth, first), -1, 0}
		n := left.at(uint64(k.group)<<32 | uint64(k.birth))
		n.objects--
		n.words -= x.s.Size / 8
		t.add(foldSampled{k, x.s.Frame, x.s.Thread}, x.s, x.s.Size)
	}
	if left.used+len(t.all) > maxFolded {
		return nil, ErrFold
	}
	out := left.folded(make([]Folded, 0, left.used+len(t.all)))
	t.byID()
	return t.folded(out, func(d *Folded, k foldKey) { d.Type, d.Birth, d.Space = k.group, k.birth, -1 }), nil
}

// inOrder puts what has no sample in an order of its own: sums over it come out the same, to the last bit, however it was counted.
func inOrder(fs []Folded) {
	birth := func(f *Folded) uint64 {
		if f.AtLeast {
			return uint64(f.Birth) | atLeast
		}
		return uint64(f.Birth)
	}
	slices.SortFunc(fs, func(a, b Folded) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(birth(&a), birth(&b)))
	})
}
