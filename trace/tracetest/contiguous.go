package tracetest

import (
	"slices"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/ramp"
)

// memory is the part of the model that differs between collectors: where objects lie and what a collection does with
// them.
type memory interface {
	words() uint64       // of the heap
	regionWords() uint64 // 0 unless G1
	bigWords() uint64    // from this size on objects are not allocated in eden
	allocEden(o *obj) bool
	allocBig(o *obj) bool
	skipEden(words uint64)
	needsFull() bool // a young collection could run out of room
	relieve()        // lets objects die until a full collection is sure to fit
	young(pl *plan, mixed, fail bool) (failed bool)
	full(pl *plan)
	sweep(pl *plan) // Remark and Cleanup
	mark() []*obj   // at a Remark with Config.Scrub: gives what is found dead
	marking() bool  // there was such a Remark, and no Cleanup since
	scrub(all bool) // puts fillers over what was found dead; all: at the Cleanup
	wasOld(addr uint64) bool
	spaces() []trace.Space
	regions() []trace.RegionRun
	areas() []ramp.Area // of the state; young(i) says whether area i is young
	isYoung(i int) bool
}

func newMemory(m *Model) memory {
	if m.cfg.Collector == trace.CollectorG1 {
		return newRegional(m)
	}
	c := &contiguous{m: m, e: m.align(m.cfg.Eden)}
	c.s = m.align(c.e / 4)
	if c.o = 3 * c.e; m.cfg.Old > 0 {
		c.o = m.align(m.cfg.Old)
	}
	c.fromBase, c.toBase, c.oldBase = c.e, c.e+c.s, c.e+2*c.s
	c.fromTop, c.toTop, c.oldTop = c.fromBase, c.toBase, c.oldBase
	return c
}

// contiguous is the heap of Serial and Parallel: eden, two survivor spaces, old, side by side.
type contiguous struct {
	m                         *Model
	e, s, o                   uint64 // capacities
	edenTop, fromTop, oldTop  uint64
	toTop                     uint64
	fromBase, toBase, oldBase uint64
	surv, old                 []*obj // by address
	edenLeft                  uint64 // words of eden that a full collection left filled
	emptied                   [3]uint64
}

// areas are survivor space, old space, and what a full collection left in eden.
func (c *contiguous) areas() []ramp.Area {
	return []ramp.Area{
		{Bottom: c.fromBase, Top: c.fromTop, Incarnation: c.emptied[0]},
		{Bottom: c.oldBase, Top: c.oldTop, Incarnation: c.emptied[1]},
		{Bottom: 0, Top: c.edenLeft, Incarnation: c.emptied[2]},
	}
}

func (c *contiguous) isYoung(i int) bool { return i != 1 }

func (c *contiguous) words() uint64       { return c.oldBase + c.o }
func (c *contiguous) regionWords() uint64 { return 0 }
func (c *contiguous) bigWords() uint64    { return c.e / 2 }

func (c *contiguous) allocEden(o *obj) bool {
	if c.edenTop+o.Words > c.e {
		return false
	}
	o.addr, o.Space = c.edenTop, trace.SpaceEden
	c.edenTop += o.Words
	return true
}

func (c *contiguous) skipEden(words uint64) { c.edenTop = min(c.e, c.edenTop+words) }

func (c *contiguous) allocBig(o *obj) bool {
	if c.oldTop+o.Words > c.oldBase+c.o {
		return false
	}
	o.addr, o.Space = c.oldTop, trace.SpaceOld
	c.oldTop += o.Words
	c.old = append(c.old, o)
	return true
}

func (c *contiguous) needsFull() bool {
	return c.oldBase+c.o-c.oldTop < c.edenTop+(c.fromTop-c.fromBase)+8*plabWords
}

func (c *contiguous) relieve() {
	all := slices.Concat(c.old, c.surv, c.m.eden)
	killUntil(c.m, all, c.o*6/10)
}

// killUntil lets random objects die until the live ones take at most limit words.
func killUntil(m *Model, objs []*obj, limit uint64) {
	live := uint64(0)
	for _, o := range objs {
		if !o.dead {
			live += o.Words
		}
	}
	for live > limit {
		if o := objs[m.r.IntN(len(objs))]; !o.dead {
			o.dead = true
			live -= o.Words
		}
	}
}

const plabWords = 64

// target is a space that a collection copies into: bump allocation, with Parallel through two buffers side by side.
type target struct {
	m     *Model
	top   *uint64
	limit uint64
	kind  uint64
	plab  [2]struct{ cur, end uint64 }
	out   *[]*obj // all that was put here, fillers too
	pl    *plan
}

// place finds room for words; false if there is none.
func (t *target) place(words uint64) (uint64, bool) {
	if t.m.cfg.Collector == trace.CollectorParallel && words <= plabWords/4 {
		b := &t.plab[t.m.r.IntN(2)]
		if rest := b.end - b.cur; rest < words || rest-words == 1 {
			t.retire(b.cur, b.end)
			if *t.top+plabWords > t.limit {
				*b = struct{ cur, end uint64 }{}
				return t.bump(words)
			}
			b.cur, b.end = *t.top, *t.top+plabWords
			*t.top += plabWords
		}
		b.cur += words
		return b.cur - words, true
	}
	return t.bump(words)
}

func (t *target) bump(words uint64) (uint64, bool) {
	if *t.top+words > t.limit {
		return 0, false
	}
	*t.top += words
	return *t.top - words, true
}

// retire fills what is left of a buffer.
func (t *target) retire(cur, end uint64) {
	if end-cur < 2 {
		return
	}
	ty := t.m.typ(filler)
	t.m.nextID++
	o := &obj{addr: cur, dead: true, Object: Object{
		ID: t.m.nextID, Type: uint32(ty.ID), Length: (end - cur - 2) * 2, Words: end - cur, Born: t.m.gc, Age: 1,
		Space: t.kind,
	}}
	t.pl.fillers = append(t.pl.fillers, o)
	*t.out = append(*t.out, o)
}

func (t *target) finish() {
	for _, b := range t.plab {
		t.retire(b.cur, b.end)
	}
	slices.SortFunc(*t.out, func(a, b *obj) int { return cmp(a.addr, b.addr) })
}

func (c *contiguous) young(pl *plan, _, _ bool) bool {
	m := c.m
	pl.segs = []segment{
		{0, c.edenTop, m.eden, true},
		{c.fromBase, c.fromTop - c.fromBase, c.surv, false},
	}
	c.toTop = c.toBase
	var to []*obj
	surv := &target{m: m, top: &c.toTop, limit: c.toBase + c.s, kind: trace.SpaceSurvivor, out: &to, pl: pl}
	old := &target{m: m, top: &c.oldTop, limit: c.oldBase + c.o, kind: trace.SpaceOld, out: &c.old, pl: pl}
	tenure := uint64(1 + m.r.IntN(5))
	for _, o := range slices.Concat(m.eden, c.surv) {
		if o.dead {
			continue
		}
		t := surv
		if o.Age >= tenure {
			t = old
		}
		addr, ok := t.place(o.Words)
		if !ok {
			t = old
			if addr, ok = t.place(o.Words); !ok {
				panic("tracetest: no room to promote: needsFull is wrong")
			}
		}
		pl.from[o] = o.addr
		o.addr, o.Space = addr, t.kind
		*t.out = append(*t.out, o)
	}
	surv.finish()
	old.finish()
	c.surv, m.eden, c.edenTop = to, nil, 0
	c.fromBase, c.toBase = c.toBase, c.fromBase
	c.fromTop, c.toTop = c.toTop, c.toBase
	c.edenLeft = 0
	c.emptied[0]++
	c.emptied[2]++
	return false
}

func (c *contiguous) full(pl *plan) {
	m := c.m
	pl.segs = []segment{
		{0, c.edenTop, m.eden, true},
		{c.fromBase, c.fromTop - c.fromBase, c.surv, false},
		{c.oldBase, c.oldTop - c.oldBase, c.old, false},
	}
	stay := m.r.IntN(3) == 0 // what is live in eden slides down in eden
	var old, eden []*obj
	top, edenTop := c.oldBase, uint64(0)
	for i, objs := range [][]*obj{c.old, c.surv, m.eden} {
		for _, o := range objs {
			if o.dead {
				continue
			}
			pl.from[o] = o.addr
			if i == 2 && stay {
				o.addr = edenTop
				edenTop += o.Words
				eden = append(eden, o)
				continue
			}
			o.addr, o.Space = top, trace.SpaceOld
			top += o.Words
			old = append(old, o)
		}
	}
	c.old, c.surv, m.eden = old, nil, eden
	c.oldTop, c.fromTop, c.edenTop, c.edenLeft = top, c.fromBase, edenTop, edenTop
	for i := range c.emptied {
		c.emptied[i]++
	}
}

func (c *contiguous) sweep(*plan)                {}
func (c *contiguous) mark() []*obj               { return nil }
func (c *contiguous) marking() bool              { return false }
func (c *contiguous) scrub(bool)                 {}
func (c *contiguous) wasOld(addr uint64) bool    { return addr >= c.oldBase }
func (c *contiguous) regions() []trace.RegionRun { return nil }

func (c *contiguous) spaces() []trace.Space {
	sp := func(kind, bottom, top, end uint64) trace.Space {
		return trace.Space{Kind: kind, Bottom: bottom, Top: top, End: end, UsedAfter: (top - bottom) * 8}
	}
	return []trace.Space{
		sp(trace.SpaceEden, 0, c.edenTop, c.e),
		sp(trace.SpaceSurvivor, c.fromBase, c.fromTop, c.fromBase+c.s),
		sp(trace.SpaceOld, c.oldBase, c.oldTop, c.oldBase+c.o),
	}
}
