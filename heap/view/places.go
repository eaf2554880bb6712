package view

import (
	"github.com/heapcam/heapcam/heap/samples"
	"github.com/heapcam/heapcam/heap/state"
)

// Places walks over the states of a replay, collection by collection, and keeps what Fold by sites (WantSamples) needs
// beside the counts, so that a view of which only counts were kept (View.FreezeCounts) can be folded so, too. That is:
// of each type, how many objects have which birth, as far as such a fold tells births apart; and that each live sample
// is in an object of its own type, size and birth. Only chunks that have changed since the state before are visited.
type Places struct {
	lives  *samples.Lives
	chunks map[uint64]*placed
	born   map[bornKey]cell // objects of births other than the common one: after the first collection, without a mark
	stamp  uint32           // of the state that was seen last
	odd    int              // samples that stand where they should not
}

// bornKey is a type and what is distinguished of a birth, with the mark.
type bornKey struct{ typ, birth uint32 }

type bornCount struct {
	bornKey
	cell
}

// placed is what Places knows of a chunk.
type placed struct {
	c    *state.Chunk
	born []bornCount
	here []int32 // samples that are there, by place in Lives.all
	odd  int
	seen bool
}

// NewPlaces begins with the first state. l follows the same replay; call Lives.Follow before View.FreezeCounts.
func NewPlaces(l *samples.Lives) *Places {
	return &Places{lives: l, chunks: map[uint64]*placed{}, born: map[bornKey]cell{}}
}

// follow takes in the chunks that are not as they were. Samples that move from one chunk to another are taken out of
// all before they are put into any. It says whether the objects of all live samples are where they should be.
func (p *Places) follow(v *View) bool {
	s := v.State
	p.lives.Mu.Lock()
	defer p.lives.Mu.Unlock()
	var changed []uint64
	for at, c := range s.Chunks {
		x := p.chunks[at]
		if x == nil {
			x = &placed{}
			p.chunks[at] = x
		}
		if x.seen = true; x.c != c || c.Written(p.stamp) {
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
	first := uint32(v.First)
	var t foldTable
	for _, at := range changed {
		c := s.Chunks[at]
		s.Tidy(c)
		x := p.chunks[at]
		x.c = c
		p.count(x, s.Codes, first, &t)
		p.samples(x, s.Codes)
	}
	p.stamp = s.Stamp()
	return p.odd == 0 && p.lives.AllPlaced()
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
		p.lives.Unplace(int(i))
	}
	p.odd -= x.odd
	x.born, x.here, x.odd = nil, x.here[:0], 0
}

// count counts the objects of a chunk whose birth is not the common one.
func (p *Places) count(x *placed, codes *state.Codes, first uint32, t *foldTable) {
	c := x.c
	clear(t.keys)
	clear(t.count)
	t.used = 0
	see := func(code, b uint32) {
		n := t.at(uint64(codes.Type[code])<<32 | uint64(era(b&^state.AtLeastMark, first)|b&state.AtLeastMark))
		n.objects++
		n.words += codes.Words[code]
	}
	common := func(b uint32) bool { return b > first && b < state.AtLeastMark }
	if c.Birth == nil {
		if len(c.Off) == 0 || common(c.Same) {
			return
		}
		for _, code := range c.Code {
			see(code, c.Same)
		}
	} else {
		for i, b := range c.Birth {
			if !common(b) {
				see(c.Code[i], b)
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

// samples looks which samples are in a chunk. The caller holds the lock of lives.
func (p *Places) samples(x *placed, codes *state.Codes) {
	c, o := x.c, 0
	for i, sa := range c.Samples {
		if i+1 < len(c.Samples) && c.Samples[i+1].Off == sa.Off { // the last of one offset counts
			continue
		}
		at := p.lives.Index(sa.ID)
		if at < 0 || p.lives.All[at].To != 0 {
			continue
		}
		l := &p.lives.All[at]
		for o < len(c.Off) && c.Off[o] < sa.Off {
			o++
		}
		if o == len(c.Off) || c.Off[o] != sa.Off {
			continue
		}
		code := c.Code[o]
		if l.Placed || l.Birth >= samples.NoBirth || l.Birth != c.Born(o) ||
			l.Sample.Type != uint64(codes.Type[code]) || l.Sample.Size != codes.Words[code]*8 {
			p.odd++
			x.odd++
			continue
		}
		p.lives.Place(at)
		x.here = append(x.here, int32(at))
	}
}

// era is Era where only the first collection is distinguished from later ones.
func era(birth, first uint32) uint32 {
	if birth <= first {
		return first
	}
	return first + 1
}
