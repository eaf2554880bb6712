// Package match says which objects of a sync point's listing are those of the state before it: what differs (Compare),
// and what is the same although the pause had no object data (Identify).
//
// Terms: a difference is *explained* if a rule of the collector says why it is there; anything else is a mismatch. An
// identity is *proven* if no other object can be the listed one. Invariant: nothing is guessed. This package only reads
// the state before, and gives the new one what the old one knows.
package match

import (
	"slices"

	"github.com/heapcam/heapcam/heap/state"
	"github.com/heapcam/heapcam/heap/symbols"
	"github.com/heapcam/heapcam/trace"
)

// Names of differences between a replayed state and a listing that the facts explain. Anything else is a mismatch.
const (
	// ByEden: eden is not part of ordinary listings. An object that a full collection or a walk listed in eden is not
	// listed again before eden is collected, and a walk lists what no collection has seen.
	ByEden = "eden"
	// ByFiller: a filler of its own class (JDK 25) stands over objects that were known: G1 scrubs what is dead between
	// two pauses.
	ByFiller = "filler"
	// ByPlainFiller: JDK 17 fills with int[] and java.lang.Object. One of them covers known, unsampled objects of an
	// old region of G1, from the beginning of the first to the end of the last.
	ByPlainFiller = "unidentified filler"
	// ByDeadWood: the same over objects that a full collection left: it does not compact what is nearly full.
	ByDeadWood = "dead wood"
	// ByFreed: what was known in a region of G1 that is free after a Remark or Cleanup.
	ByFreed = "freed region"
	// ByGrant: Serial gave out memory at the top of a space in the pause itself; what is read there has no header yet.
	ByGrant = "unformatted grant"
	// ByLate: where eden is full after a collection, Serial gives out memory at the top of a survivor space.
	ByLate = "late allocation"
)

// Kinds of mismatches.
const (
	Missing   = "missing"   // known and not listed
	Extra     = "extra"     // listed and not known
	Different = "different" // known as something else
)

// Difference is a mismatch. Addr is in words from the heap base; Known and Listed are class names, "" if nothing stands
// there.
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
func (m *Matcher) kinds(c *state.Codes) []uint8 {
	byType := map[uint32]uint8{}
	plain := m.Symbols.JVM.Major < 21 // the classes of fillers came with 20
	out := make([]uint8, len(c.Type))
	for i, t := range c.Type {
		mark, ok := byType[t]
		if !ok {
			ty := m.Symbols.Types[uint64(t)]
			if ty.Flags&trace.TypeFiller != 0 {
				mark = typedFiller
			} else if plain && (ty.Name == "[I" || ty.Name == "java/lang/Object") {
				mark = plainFiller
			}
			byType[t] = mark
		}
		out[i] = mark
	}
	return out
}

// comparer walks over two states in order of address.
type comparer struct {
	m         *Matcher
	old, next *state.State
	cmp       *Comparison
	kinds     []uint8
	edenNew   bool // eden is listed
	edenOld   bool // the state may hold objects of eden, which is not listed
	eden      ranges
	freed     ranges // regions that a Remark or Cleanup may have freed
	oldRegion ranges // G1
	grant     trace.Range
	cover     cover
	late      ranges // Serial
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

// Matcher says which objects of a listing are those of the state before it. Its fields are what the recording has said
// up to the listing.
type Matcher struct {
	Symbols *symbols.Table
	Spaces  []trace.Space     // of the pause that the listing belongs to
	Regions []trace.RegionRun // of G1, after the newest pause of which the state is known
	Eden    bool              // the state may hold objects of eden
	Swept   bool              // there was a Remark or Cleanup since the newest sync point
}

// Compare says how the listing next differs from the state old, and gives the objects of next what old knows of them.
// old is used up.
func (m *Matcher) Compare(s *trace.Sync, old, next *state.State) Comparison {
	cmp := Comparison{GC: s.GC, Reason: s.Reason, Objects: uint64(next.Objects()), Explained: map[string]uint64{}}
	c := &comparer{m: m, old: old, next: next, cmp: &cmp, kinds: m.kinds(next.Codes),
		edenNew: s.Flags&trace.SyncEdenListed != 0}
	c.edenOld = m.Eden && !c.edenNew
	c.eden = m.where(trace.SpaceEden, s.Spaces, s.Regions)
	jvm := &m.Symbols.JVM
	if jvm.RegionWords > 0 {
		c.oldRegion = m.regionsOf(trace.SpaceOld, s.Regions)
		if m.Swept {
			c.freed = m.regionsOf(trace.SpaceFree, s.Regions)
		}
	}
	if jvm.Collector == trace.CollectorSerial {
		for _, b := range m.Spaces { // the epoch says where the space ends, the listing where its objects do
			for _, a := range s.Spaces {
				if a.Kind == trace.SpaceOld && b.Kind == a.Kind && b.Top > a.Top {
					c.grant = trace.Range{Start: a.Top, Words: b.Top - a.Top}
				}
			}
		}
		c.late = m.lateIn(old, s.Spaces)
	}
	for _, k := range both(old, next) {
		c.chunk(k, old.Chunks[k], next.Chunks[k])
		delete(old.Chunks, k)
	}
	c.close()
	return cmp
}

// both gives the numbers of the chunks that either state has, in order.
func both(a, b *state.State) []uint64 {
	ks := make([]uint64, 0, len(b.Chunks))
	for k := range b.Chunks {
		ks = append(ks, k)
	}
	for k := range a.Chunks {
		if b.Chunks[k] == nil {
			ks = append(ks, k)
		}
	}
	slices.Sort(ks)
	return ks
}

var noChunk = &state.Chunk{}

func (c *comparer) chunk(k uint64, o, n *state.Chunk) {
	if o != nil && n != nil && slices.Equal(o.Off, n.Off) && slices.Equal(o.Code, n.Code) {
		n.Borrow(o, c.old)
		return
	}
	if o == nil {
		o = noChunk
	}
	if n == nil {
		n = noChunk
	}
	base := k << state.ChunkShift
	i, j := 0, 0
	for i < len(o.Off) || j < len(n.Off) {
		switch {
		case j == len(n.Off) || i < len(o.Off) && o.Off[i] < n.Off[j]:
			c.missing(base|uint64(o.Off[i]), o, i)
			i++
		case i == len(o.Off) || n.Off[j] < o.Off[i]:
			c.extra(base|uint64(n.Off[j]), n.Code[j])
			j++
		default:
			if o.Code[i] == n.Code[j] {
				n.SetBirth(j, o.Born(i))
			} else {
				c.different(base|uint64(o.Off[i]), o, i, n.Code[j])
			}
			i++
			j++
		}
	}
	n.Level()
}

func (c *comparer) name(code uint32) string { return c.m.Symbols.TypeName(c.next.Codes.Type[code]) }

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

func (c *comparer) missing(addr uint64, o *state.Chunk, i int) {
	end := addr + c.next.Codes.Words[o.Code[i]]
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
		c.bad(Difference{Kind: Missing, Addr: addr, Known: c.name(o.Code[i])})
	}
	c.lastEnd = end
}

func (c *comparer) under(addr, end uint64, o *state.Chunk, i int) {
	v := &c.cover
	v.n++
	v.last = end
	v.sampled = v.sampled || o.SampleOf(o.Off[i]) != 0
	v.lost = v.lost && o.Born(i)&state.AtLeastMark != 0
	if len(v.known) < maxFirst {
		v.known = append(v.known, Difference{Kind: Missing, Addr: addr, Known: c.name(o.Code[i])})
	}
}

func (c *comparer) extra(addr uint64, code uint32) {
	if c.cover.open { // listed objects do not overlap
		c.close()
	}
	switch {
	case c.edenNew && c.eden.has(addr):
		c.cmp.Explained[ByEden]++
	case c.late.has(addr):
		c.cmp.Explained[ByLate]++
	case c.kinds[code] != 0:
		c.begin(addr, code)
		c.cover.inside = addr < c.lastEnd
	default:
		c.bad(Difference{Kind: Extra, Addr: addr, Listed: c.name(code)})
	}
}

func (c *comparer) different(addr uint64, o *state.Chunk, i int, code uint32) {
	if c.cover.open {
		c.close()
	}
	end := addr + c.next.Codes.Words[o.Code[i]]
	if c.kinds[code] != 0 {
		c.begin(addr, code)
		c.cover.same = true
		c.under(addr, end, o, i)
	} else {
		c.bad(Difference{Kind: Different, Addr: addr, Known: c.name(o.Code[i]), Listed: c.name(code)})
	}
	c.lastEnd = end
}

func (c *comparer) begin(addr uint64, code uint32) {
	c.cover = cover{open: true, addr: addr, end: addr + c.next.Codes.Words[code], code: code,
		typed: c.kinds[code]&typedFiller != 0, lost: true, known: c.cover.known[:0]}
}

// close decides what the object under way is. A filler overwrites, so what it stands over is dead whatever the replay
// says. What only may be one must fit exactly, and nothing under it may have a sample: those are followed to their
// deaths.
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
