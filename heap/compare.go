package heap

import (
	"slices"

	"github.com/heapcam/heapcam/trace"
)

// Names of differences between a replayed state and a listing that the facts explain. Anything else is a mismatch.
const (
	// ByEden: eden is not part of ordinary listings. An object that a full collection or a walk listed in eden is not listed again before
	// eden is collected, and a walk lists what no collection has seen.
	ByEden = "eden"
	// ByFiller: a filler of its own class (JDK 25) stands over objects that were known: G1 scrubs what is dead between two pauses.
	ByFiller = "filler"
	// ByPlainFiller: JDK 17 fills with int[] and java.lang.Object. One of them covers known, unsampled objects of an old region of G1,
	// from the beginning of the first to the end of the last.
	ByPlainFiller = "unidentified filler"
	// ByDeadWood: the same over objects that a full collection left: it does not compact what is nearly full.
	ByDeadWood = "dead wood"
	// ByFreed: what was known in a region of G1 that is free after a Remark or Cleanup.
	ByFreed = "freed region"
	// ByGrant: Serial gave out memory at the top of a space in the pause itself; what is read there has no header yet.
	ByGrant = "unformatted grant"
)

// Kinds of mismatches.
const (
	Missing   = "missing"   // known and not listed
	Extra     = "extra"     // listed and not known
	Different = "different" // known as something else
)

// Difference is a mismatch. Addr is in words from the heap base; Known and Listed are class names, "" if nothing stands there.
type Difference struct {
	Kind          string
	Addr          uint64
	Known, Listed string
}

// Comparison is what a sync point said of the replayed state. Counts are objects.
type Comparison struct {
	GC, Reason                uint64
	Objects                   uint64 // listed
	Missing, Extra, Different uint64
	First                     []Difference      // in order of address, at most maxFirst
	Explained                 map[string]uint64 // by name
}

// maxFirst bounds the mismatches that are kept.
const maxFirst = 10

// Mismatches gives how many objects differ without an explanation.
func (c *Comparison) Mismatches() uint64 { return c.Missing + c.Extra + c.Different }

// Marks of codes.
const (
	typedFiller = 1 << iota // of a class that only fillers have
	plainFiller             // of a class that JDK 17's fillers have, too
)

// kinds gives the marks of each code.
func (r *Replayer) kinds(c *codes) []uint8 {
	byType := map[uint32]uint8{}
	plain := r.JVM.Major < 21 // the classes of fillers came with 20
	out := make([]uint8, len(c.typ))
	for i, t := range c.typ {
		m, ok := byType[t]
		if !ok {
			ty := r.Types[uint64(t)]
			if ty.Flags&trace.TypeFiller != 0 {
				m = typedFiller
			} else if plain && (ty.Name == "[I" || ty.Name == "java/lang/Object") {
				m = plainFiller
			}
			byType[t] = m
		}
		out[i] = m
	}
	return out
}

// comparer walks over two states in order of address.
type comparer struct {
	r         *Replayer
	old, next *State
	cmp       *Comparison
	kinds     []uint8
	edenNew   bool // eden is listed
	edenOld   bool // the state may hold objects of eden, which is not listed
	eden      ranges
	freed     ranges // regions that a Remark or Cleanup may have freed
	oldRegion ranges // G1
	grant     trace.Range
	cover     cover
	lastEnd   uint64 // end of the known object that was missing last
}

// cover is a listed object that may be a filler, and what it stands over.
type cover struct {
	addr, end uint64
	code      uint32
	open      bool
	typed     bool
	same      bool // a known object begins where it begins
	inside    bool // it begins within a known object that is not listed
	sampled   bool
	lost      bool // all that it stands over was there after a full collection, and nothing proves since when
	known     []Difference
	n, last   uint64 // known objects under it, and the end of the last
}

// compare says how the listing next differs from the state old, and gives next what old knows of the same objects. old is used up.
func (r *Replayer) compare(s *trace.Sync, old, next *State) Comparison {
	cmp := Comparison{GC: s.GC, Reason: s.Reason, Objects: uint64(next.n), Explained: map[string]uint64{}}
	c := &comparer{r: r, old: old, next: next, cmp: &cmp, kinds: r.kinds(next.codes), edenNew: s.Flags&trace.SyncEdenListed != 0}
	c.edenOld = r.edenIn && !c.edenNew
	c.eden = r.where(trace.SpaceEden, s.Spaces, s.Regions)
	if r.JVM.RegionWords > 0 {
		c.oldRegion = r.regionsOf(trace.SpaceOld, s.Regions)
		if r.swept {
			c.freed = r.regionsOf(trace.SpaceFree, s.Regions)
		}
	}
	if p := r.pending; p != nil && r.JVM.Collector == trace.CollectorSerial {
		for _, b := range p.Spaces { // the epoch tells where the space ends, the listing where its objects do
			for _, a := range s.Spaces {
				if a.Kind == trace.SpaceOld && b.Kind == a.Kind && b.Top > a.Top {
					c.grant = trace.Range{Start: a.Top, Words: b.Top - a.Top}
				}
			}
		}
	}
	for _, k := range both(old, next) {
		c.chunk(k, old.chunks[k], next.chunks[k])
		delete(old.chunks, k)
	}
	c.close()
	return cmp
}

var noChunk = &chunk{}

func (c *comparer) chunk(k uint64, o, n *chunk) {
	if o != nil && n != nil && slices.Equal(o.off, n.off) && slices.Equal(o.code, n.code) {
		lent := o.lent || o.owner != c.old.id
		*n = chunk{off: o.off, code: o.code, birth: o.birth, same: o.same, samples: n.samples, owner: n.owner, lent: lent}
		return
	}
	if o == nil {
		o = noChunk
	}
	if n == nil {
		n = noChunk
	}
	base := k << chunkShift
	i, j := 0, 0
	for i < len(o.off) || j < len(n.off) {
		switch {
		case j == len(n.off) || i < len(o.off) && o.off[i] < n.off[j]:
			c.missing(base|uint64(o.off[i]), o, i)
			i++
		case i == len(o.off) || n.off[j] < o.off[i]:
			c.extra(base|uint64(n.off[j]), n.code[j])
			j++
		default:
			if o.code[i] == n.code[j] {
				n.setBirth(j, o.born(i))
			} else {
				c.different(base|uint64(o.off[i]), o, i, n.code[j])
			}
			i++
			j++
		}
	}
	n.level()
}

func (c *comparer) name(code uint32) string { return c.r.TypeName(c.next.codes.typ[code]) }

func (c *comparer) bad(d Difference) {
	switch d.Kind {
	case Missing:
		c.cmp.Missing++
	case Extra:
		c.cmp.Extra++
	default:
		c.cmp.Different++
	}
	if len(c.cmp.First) < maxFirst {
		c.cmp.First = append(c.cmp.First, d)
	}
}

func (c *comparer) missing(addr uint64, o *chunk, i int) {
	end := addr + c.next.codes.words[o.code[i]]
	if c.cover.open && addr >= c.cover.end {
		c.close()
	}
	switch {
	case c.cover.open:
		c.under(addr, end, o, i)
	case c.edenOld && c.eden.has(addr):
		c.cmp.Explained[ByEden]++
	case c.freed.has(addr):
		c.cmp.Explained[ByFreed]++
	case addr-c.grant.Start < c.grant.Words:
		c.cmp.Explained[ByGrant]++
	default:
		c.bad(Difference{Kind: Missing, Addr: addr, Known: c.name(o.code[i])})
	}
	c.lastEnd = end
}

func (c *comparer) under(addr, end uint64, o *chunk, i int) {
	v := &c.cover
	v.n++
	v.last = end
	v.sampled = v.sampled || o.sampleOf(o.off[i]) != 0
	v.lost = v.lost && o.born(i)&atLeast != 0
	if len(v.known) < maxFirst {
		v.known = append(v.known, Difference{Kind: Missing, Addr: addr, Known: c.name(o.code[i])})
	}
}

func (c *comparer) extra(addr uint64, code uint32) {
	if c.cover.open { // listed objects do not overlap
		c.close()
	}
	switch {
	case c.edenNew && c.eden.has(addr):
		c.cmp.Explained[ByEden]++
	case c.kinds[code] != 0:
		c.begin(addr, code)
		c.cover.inside = addr < c.lastEnd
	default:
		c.bad(Difference{Kind: Extra, Addr: addr, Listed: c.name(code)})
	}
}

func (c *comparer) different(addr uint64, o *chunk, i int, code uint32) {
	if c.cover.open {
		c.close()
	}
	end := addr + c.next.codes.words[o.code[i]]
	if c.kinds[code] != 0 {
		c.begin(addr, code)
		c.cover.same = true
		c.under(addr, end, o, i)
	} else {
		c.bad(Difference{Kind: Different, Addr: addr, Known: c.name(o.code[i]), Listed: c.name(code)})
	}
	c.lastEnd = end
}

func (c *comparer) begin(addr uint64, code uint32) {
	c.cover = cover{open: true, addr: addr, end: addr + c.next.codes.words[code], code: code, typed: c.kinds[code]&typedFiller != 0, lost: true, known: c.cover.known[:0]}
}

// close decides what the object under way is. A filler overwrites, so what it stands over is dead whatever the replay says. What only may be
// one must fit exactly, and nothing under it may have a sample: those are followed to their deaths.
func (c *comparer) close() {
	v := &c.cover
	if !v.open {
		return
	}
	v.open = false
	why := ""
	switch {
	case v.typed && (v.n > 0 || v.inside):
		why = ByFiller
	case v.typed || v.n == 0 || v.sampled || v.last != v.end || !v.same || !c.oldRegion.has(v.addr):
	case v.lost:
		why = ByDeadWood
	default:
		why = ByPlainFiller
	}
	if why != "" {
		c.cmp.Explained[why] += max(v.n, 1)
		return
	}
	known := v.known
	first := Difference{Kind: Extra, Addr: v.addr, Listed: c.name(v.code)}
	if v.same {
		first.Kind, first.Known = Different, known[0].Known
		known = known[1:]
	}
	c.bad(first)
	for _, d := range known {
		c.bad(d)
	}
	c.cmp.Missing += v.n - uint64(len(v.known))
}
