package tracetest

import (
	"slices"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/ramp"
)

// regional is the heap of G1: equal regions that change their kind.
type regional struct {
	m       *Model
	size    uint64 // words of a region
	maxEden int
	regs    []region
	was     []uint64      // kinds before the pause
	cur     int           // the eden region that is being filled, -1 if none
	dead    map[*obj]bool // found by the marking that is under way; nil: none is
}

type region struct {
	kind uint64
	top  uint64 // words used
	objs []*obj // by address; a humongous object is in its first region
	n    uint64 // how often it was emptied
}

func (r *region) empty() { *r = region{n: r.n + 1} }

// areas are the regions; a humongous object is all of the area of its first one.
func (g *regional) areas() []ramp.Area {
	out := make([]ramp.Area, len(g.regs))
	for i := range g.regs {
		r, bottom := &g.regs[i], uint64(i)*g.size
		out[i] = ramp.Area{Bottom: bottom, Top: bottom, Incarnation: r.n}
		switch r.kind {
		case trace.SpaceOld, trace.SpaceSurvivor:
			out[i].Top += r.top
		case trace.SpaceHumongous:
			out[i].Top += r.objs[0].Words
		}
	}
	return out
}

func (g *regional) isYoung(i int) bool { return g.regs[i].kind == trace.SpaceSurvivor }

func newRegional(m *Model) *regional {
	g := &regional{m: m, size: max(64, m.align(m.cfg.Eden/16)), cur: -1}
	g.maxEden = int(m.cfg.Eden / g.size)
	g.regs = make([]region, 8*g.maxEden)
	return g
}

func (g *regional) words() uint64       { return uint64(len(g.regs)) * g.size }
func (g *regional) regionWords() uint64 { return g.size }
func (g *regional) bigWords() uint64    { return g.size/2 + 1 }

func (g *regional) count(kind uint64) (n int) {
	for i := range g.regs {
		if g.regs[i].kind == kind {
			n++
		}
	}
	return n
}

// take makes a free region one of that kind; -1 if there is none. G1 takes from either end; the model takes any.
func (g *regional) take(kind uint64) int {
	start := g.m.r.IntN(len(g.regs))
	for i := range g.regs {
		j := (start + i) % len(g.regs)
		if g.regs[j].kind == trace.SpaceFree {
			g.regs[j].kind = kind
			return j
		}
	}
	return -1
}

func (g *regional) put(i int, o *obj) {
	r := &g.regs[i]
	o.addr, o.Space = uint64(i)*g.size+r.top, r.kind
	r.top += o.Words
	r.objs = append(r.objs, o)
}

func (g *regional) allocEden(o *obj) bool {
	if g.cur < 0 || g.regs[g.cur].top+o.Words > g.size {
		if g.count(trace.SpaceEden) >= g.maxEden {
			return false
		}
		if g.cur = g.take(trace.SpaceEden); g.cur < 0 {
			return false
		}
		// m.eden must be by address within each region only: segments are per region.
	}
	g.put(g.cur, o)
	return true
}

func (g *regional) skipEden(words uint64) {
	if g.cur >= 0 {
		g.regs[g.cur].top = min(g.size, g.regs[g.cur].top+words)
	}
}

func (g *regional) allocBig(o *obj) bool {
	n := int((o.Words + g.size - 1) / g.size)
	run := 0
	for i := range g.regs {
		if g.regs[i].kind != trace.SpaceFree {
			run = 0
			continue
		}
		if run++; run == n {
			first := i - n + 1
			for j := first; j <= i; j++ {
				g.regs[j] = region{kind: trace.SpaceHumongousCont, top: g.size, n: g.regs[j].n}
			}
			g.regs[first] = region{kind: trace.SpaceHumongous, top: min(g.size, o.Words), objs: []*obj{o},
				n: g.regs[first].n}
			g.regs[i].top = o.Words - uint64(n-1)*g.size
			o.addr, o.Space = uint64(first)*g.size, trace.SpaceHumongous
			return true
		}
	}
	return false
}

func (g *regional) needsFull() bool {
	// Copying may take a region more per target than it empties, and a mixed collection four old regions more.
	return g.count(trace.SpaceFree) < g.count(trace.SpaceEden)+g.count(trace.SpaceSurvivor)+16
}

func (g *regional) relieve() {
	var small, big []*obj
	for i := range g.regs {
		if g.regs[i].kind == trace.SpaceHumongous {
			big = append(big, g.regs[i].objs...)
		} else {
			small = append(small, g.regs[i].objs...)
		}
	}
	killUntil(g.m, small, g.words()/4)
	killUntil(g.m, big, g.words()/10)
}

func (g *regional) seg(i int) segment {
	return segment{uint64(i) * g.size, g.regs[i].top, g.regs[i].objs, g.regs[i].kind == trace.SpaceEden}
}

func (g *regional) snapshot() {
	g.was = g.was[:0]
	for i := range g.regs {
		g.was = append(g.was, g.regs[i].kind)
	}
}

func (g *regional) wasOld(addr uint64) bool { return g.was[addr/g.size] == trace.SpaceOld }

// lanes are the regions that a collection copies into, side by side.
type lanes struct {
	g    *regional
	kind uint64
	at   [3]int
}

func (l *lanes) place(o *obj) {
	at := &l.at[l.g.m.r.IntN(len(l.at))]
	if *at < 0 || l.g.regs[*at].top+o.Words > l.g.size {
		if *at = l.g.take(l.kind); *at < 0 {
			panic("tracetest: no region to copy into: needsFull is wrong")
		}
	}
	l.g.put(*at, o)
}

func (g *regional) young(pl *plan, mixed, fail bool) (failed bool) {
	m := g.m
	g.snapshot()
	var cset []int
	olds := 0
	spare := -1 // an old region that is not full is filled further
	for i := range g.regs {
		r := &g.regs[i]
		switch r.kind {
		case trace.SpaceEden, trace.SpaceSurvivor:
			cset = append(cset, i)
		case trace.SpaceOld:
			if mixed && olds < 4 && m.r.IntN(2) == 0 {
				cset = append(cset, i)
				olds++
			} else if spare < 0 && r.top < g.size/2 {
				spare = i
			}
		}
	}
	surv := &lanes{g, trace.SpaceSurvivor, [3]int{-1, -1, -1}}
	old := &lanes{g, trace.SpaceOld, [3]int{spare, -1, -1}}
	tenure := uint64(1 + m.r.IntN(5))
	var freeing []int
	for _, i := range cset {
		s := g.seg(i)
		pl.segs = append(pl.segs, s)
		stays := fail && !failed && s.eden && slices.ContainsFunc(s.objs, func(o *obj) bool { return !o.dead })
		if stays {
			failed = true
			g.regs[i].kind = trace.SpaceOld
			g.regs[i].objs = nil
		} else {
			freeing = append(freeing, i)
		}
		for _, o := range s.objs {
			if o.dead {
				continue
			}
			pl.from[o] = o.addr
			switch {
			case stays:
				o.Space = trace.SpaceOld
				g.regs[i].objs = append(g.regs[i].objs, o)
			case g.was[i] == trace.SpaceOld || o.Age >= tenure:
				old.place(o)
			default:
				surv.place(o)
			}
		}
	}
	for _, i := range freeing {
		g.regs[i].empty()
	}
	m.eden, g.cur = nil, -1
	g.reclaim(pl, trace.SpaceHumongous)
	return failed
}

// reclaim frees regions of that kind in which everything is dead, sometimes.
func (g *regional) reclaim(pl *plan, kind uint64) {
	for i := range g.regs {
		r := &g.regs[i]
		if r.kind != kind || g.m.r.IntN(2) == 0 || slices.ContainsFunc(r.objs, func(o *obj) bool { return !o.dead }) {
			continue
		}
		pl.frees = append(pl.frees, r.objs...)
		n := i + 1
		for kind == trace.SpaceHumongous && n < len(g.regs) && g.regs[n].kind == trace.SpaceHumongousCont {
			n++
		}
		pl.freed = append(pl.freed, trace.Range{Start: uint64(i) * g.size, Words: uint64(n-i) * g.size})
		for j := i; j < n; j++ {
			g.regs[j].empty()
		}
	}
}

func (g *regional) sweep(pl *plan) {
	g.snapshot()
	g.reclaim(pl, trace.SpaceOld)
	g.reclaim(pl, trace.SpaceHumongous)
}

// mark finds what is dead in old regions, and the samples on it.
func (g *regional) mark() (found []*obj) {
	g.dead = map[*obj]bool{}
	for i := range g.regs {
		if g.regs[i].kind != trace.SpaceOld {
			continue
		}
		for _, o := range g.regs[i].objs {
			if o.dead && o.in {
				g.dead[o] = true
				found = append(found, o)
			}
		}
	}
	return found
}

func (g *regional) marking() bool { return g.dead != nil }

// scrub puts one filler over each run of objects that the marking found dead, in some of the old regions.
func (g *regional) scrub(all bool) {
	if g.dead == nil {
		return
	}
	for i := range g.regs {
		r := &g.regs[i]
		if r.kind != trace.SpaceOld || !all && g.m.r.IntN(3) > 0 {
			continue
		}
		var objs []*obj
		var run *obj
		for _, o := range r.objs {
			if !g.dead[o] {
				objs, run = append(objs, o), nil
				continue
			}
			delete(g.m.known, o.addr)
			if run == nil || run.addr+run.Words != o.addr {
				run = g.filler(o.addr)
				objs = append(objs, run)
			}
			run.Words += o.Words
			run.Length = (run.Words - 2) * 2
		}
		r.objs = objs
	}
	if all {
		g.dead = nil
	}
}

// filler gives a filler of no size yet that is in the state.
func (g *regional) filler(addr uint64) *obj {
	g.m.nextID++
	f := &obj{addr: addr, dead: true, in: true, Object: Object{ID: g.m.nextID, Type: uint32(g.m.typ(filler).ID),
		Born: g.m.gc, Space: trace.SpaceOld}}
	g.m.known[addr] = f
	return f
}

func (g *regional) full(pl *plan) {
	g.snapshot()
	g.dead = nil // a full collection ends the marking
	var live []*obj
	for i := range g.regs {
		r := &g.regs[i]
		switch r.kind {
		case trace.SpaceFree, trace.SpaceHumongousCont:
			continue
		}
		s := g.seg(i)
		big := r.kind == trace.SpaceHumongous
		if big {
			s.words = s.objs[0].Words
		}
		pl.segs = append(pl.segs, s)
		for _, o := range s.objs {
			if o.dead {
				continue
			}
			pl.from[o] = o.addr
			if !big {
				live = append(live, o)
			}
		}
		if big && !s.objs[0].dead {
			continue
		}
		r.empty()
		for j := i + 1; big && j < len(g.regs) && g.regs[j].kind == trace.SpaceHumongousCont; j++ {
			g.regs[j].empty()
		}
	}
	at := 0
	for _, o := range live {
		for g.regs[at].kind != trace.SpaceFree &&
			(g.regs[at].kind != trace.SpaceOld || g.regs[at].top+o.Words > g.size) {
			at++
		}
		g.regs[at].kind = trace.SpaceOld
		g.put(at, o)
	}
	g.m.eden, g.cur = nil, -1
}

func (g *regional) spaces() []trace.Space {
	var used [trace.SpaceArchive + 1]uint64
	for i := range g.regs {
		used[g.regs[i].kind] += g.regs[i].top * 8
	}
	var out []trace.Space
	for _, k := range []uint64{trace.SpaceEden, trace.SpaceSurvivor, trace.SpaceOld, trace.SpaceHumongous} {
		u := used[k]
		if k == trace.SpaceHumongous {
			u += used[trace.SpaceHumongousCont]
		}
		out = append(out, trace.Space{Kind: k, UsedAfter: u})
	}
	return out
}

func (g *regional) regions() []trace.RegionRun {
	var out []trace.RegionRun
	for i := range g.regs {
		if n := len(out); n > 0 && out[n-1].Kind == g.regs[i].kind {
			out[n-1].Run++
			continue
		}
		out = append(out, trace.RegionRun{Kind: g.regs[i].kind, Run: 1})
	}
	return out
}
