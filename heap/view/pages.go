package view

import (
	"slices"
	"sort"
	"sync/atomic"
	"unsafe"

	"github.com/heapcam/heapcam/heap/state"
)

// page holds the chunks of a stretch of pageChunks numbers, 8 MiB. Frozen views share those of which no chunk has
// changed.
type page struct {
	chunks [pageChunks]*state.Chunk
	tally  atomic.Pointer[tally] // nil if it is not worth its room
}

const (
	pageShift  = 5
	pageChunks = 1 << pageShift
)

// tally is how many objects of each code a page holds, so that folding a state need not look at each object of a page
// that has rested for a while. Objects of which a fold may tell the births apart are counted by themselves: those known
// since the start, and those with the mark state.AtLeastMark.
type tally []tallied

type tallied struct {
	low, high uint32 // births, with the mark
	code      []uint32
	count     []uint32
}

func (p *page) bytes() int {
	n := int(unsafe.Sizeof(*p))
	if t := p.tally.Load(); t != nil {
		for _, x := range *t {
			n += 8*len(x.code) + int(unsafe.Sizeof(x))
		}
	}
	return n
}

// alike says whether two chunks hold the same objects because one has its columns from the other.
func alike(c, o *state.Chunk) bool {
	if c == o {
		return true
	}
	if c == nil || o == nil || len(c.Off) == 0 || len(c.Off) != len(o.Off) || &c.Off[0] != &o.Off[0] ||
		&c.Code[0] != &o.Code[0] || len(c.Birth) != len(o.Birth) {
		return false
	}
	if c.Birth == nil || o.Birth == nil {
		return c.Birth == nil && o.Birth == nil && c.Same == o.Same
	}
	return &c.Birth[0] == &o.Birth[0]
}

// holds says whether the page has the columns of these chunks, which stand from number k on.
func (p *page) holds(k uint64, chunks map[uint64]*state.Chunk) bool {
	for i, c := range p.chunks {
		if o := chunks[k+uint64(i)]; (c == nil) != (o == nil) || !alike(c, o) {
			return false
		}
	}
	return true
}

// paged gives a state's chunks in pages, those of before where they are the same, and what is new takes, in bytes.
// first is View.First.
func paged(s *state.State, before map[uint64]*page, first uint32) (pages map[uint64]*page, fresh int) {
	pages = make(map[uint64]*page, len(before))
	t := tallier{first: first}
	for k, c := range s.Chunks {
		p := pages[k>>pageShift]
		if p == nil {
			p = &page{}
			pages[k>>pageShift] = p
		}
		p.chunks[k%pageChunks] = c
	}
	for k, p := range pages {
		b := before[k]
		if b != nil && b.holds(k<<pageShift, s.Chunks) {
			if b.tally.Load() == nil {
				fresh -= b.bytes()
				b.tally.Store(t.page(p, len(s.Codes.Type)))
				fresh += b.bytes()
			}
			if b.chunks == p.chunks {
				pages[k] = b
				continue
			}
			p.tally.Store(b.tally.Load()) // of a sync point, which has samples of its own
		}
		fresh += int(unsafe.Sizeof(*p))
	}
	return pages, fresh
}

func unpaged(pages map[uint64]*page, room int) map[uint64]*state.Chunk {
	chunks := make(map[uint64]*state.Chunk, room)
	for k, p := range pages {
		for i, c := range p.chunks {
			if c != nil {
				chunks[k<<pageShift|uint64(i)] = c
			}
		}
	}
	return chunks
}

// tallier makes tallies, with counters that it uses again.
type tallier struct {
	first uint32 // View.First
	dense [4][]uint32
}

// page counts the objects of a page.
func (r *tallier) page(p *page, codes int) *tally {
	var t [4]tallied
	part := func(birth uint32) int {
		i := 0
		if birth&^state.AtLeastMark > r.first {
			i = 1
		}
		if birth&state.AtLeastMark != 0 {
			i += 2
		}
		x := &t[i]
		if x.code == nil {
			x.low, x.high = birth, birth
		}
		x.low, x.high = min(x.low, birth), max(x.high, birth)
		if len(r.dense[i]) < codes {
			r.dense[i] = make([]uint32, codes)
		}
		return i
	}
	n := 0
	for _, c := range p.chunks {
		if c == nil || len(c.Off) == 0 {
			continue
		}
		n += len(c.Off)
		last := c.Born(0)
		at := part(last)
		if c.Birth == nil {
			t[at].code = count(r.dense[at], c.Code, t[at].code)
			continue
		}
		for i, code := range c.Code {
			if b := c.Birth[i]; b != last {
				last, at = b, part(b)
			}
			m := r.dense[at][code]
			if m == 0 {
				t[at].code = append(t[at].code, code)
			}
			r.dense[at][code] = m + 1
		}
	}
	var out tally
	room := 0
	for i := range t {
		x := &t[i]
		x.code = slices.Clone(x.code)
		x.count = make([]uint32, len(x.code))
		for k, code := range x.code {
			x.count[k] = r.dense[i][code]
			r.dense[i][code] = 0
		}
		if room += len(x.code); len(x.code) > 0 {
			out = append(out, *x)
		}
	}
	if 4*room > n { // as many kinds as objects: counting them saves nothing
		out = nil
	}
	return &out
}

// tallied gives the tally of page k; nil if there is none, or the page has changed since.
func (v *View) tallied(k uint64) tally {
	p, s := v.pages[k], v.State
	if p == nil || s.Marks != state.AtLeastMark {
		return nil
	}
	t := p.tally.Load()
	if t == nil || !p.holds(k<<pageShift, s.Chunks) {
		return nil
	}
	return *t
}

// part is what a fold counts at once: chunks of one page.
type part struct {
	keys  []uint64 // numbers of chunks
	tally tally    // of the page, or nil
	space int32    // that it lies in
	work  int      // roughly
}

// parts gives the chunks of the numbers keys page by page, with the tallies that have what f looks at.
func (f *folder) parts(keys []uint64) (out []part, work int) {
	for len(keys) > 0 {
		k, n := keys[0]>>pageShift, 1
		for n < len(keys) && keys[n]>>pageShift == k {
			n++
		}
		x := part{keys: keys[:n], space: -1}
		keys = keys[n:]
		if f.want&(WantAddr|WantLabel) == 0 {
			x.tally = f.v.tallied(k)
		}
		for _, t := range x.tally {
			if f.want&WantBirth != 0 && f.birth(t.low) != f.birth(t.high) {
				x.tally = nil
				break
			}
		}
		if x.tally != nil && f.want&WantSpace != 0 {
			start, end := k<<(pageShift+state.ChunkShift), (k+1)<<(pageShift+state.ChunkShift)
			j := sort.Search(len(f.spaces), func(j int) bool { return f.spaces[j].End > start })
			if j < len(f.spaces) && f.spaces[j].Start <= start && f.spaces[j].End >= end {
				x.space = int32(j)
			} else {
				x.tally = nil
			}
		}
		for _, t := range x.tally {
			x.work += len(t.code)
		}
		for _, k := range x.keys {
			c := f.s.Chunks[k]
			if x.tally == nil {
				x.work += len(c.Off)
			}
			if f.want&WantSamples != 0 {
				x.work += 16 * len(c.Samples)
			}
		}
		work += x.work
		out = append(out, x)
	}
	return out, work
}

// part counts one.
func (f *folder) part(x part) {
	if x.tally == nil {
		for _, k := range x.keys {
			if f.err == nil {
				f.chunk(k, f.s.Chunks[k])
			}
		}
		return
	}
	t := f.table(x.space, 0, 0)
	before := t.used
	for _, y := range x.tally {
		birth := uint32(0)
		if f.want&WantBirth != 0 {
			birth = y.low
		}
		at := f.birthAt(birth)
		if at < denseBirths {
			dense := f.dense[at]
			for i, code := range y.code {
				m := dense[code]
				if m == 0 {
					f.touched[at] = append(f.touched[at], code)
				}
				dense[code] = m + y.count[i]
			}
			continue
		}
		birth = f.birth(birth)
		for i, code := range y.code {
			n := t.at(uint64(f.group[code])<<32 | uint64(birth))
			n.objects += uint64(y.count[i])
			n.words += uint64(y.count[i]) * f.s.Codes.Words[code]
		}
	}
	if f.want&WantSamples != 0 {
		for _, k := range x.keys {
			if c := f.s.Chunks[k]; len(c.Samples) > 0 && len(c.Off) > 0 {
				f.samples(c, 0, len(c.Off), t)
			}
		}
	}
	f.full(t, before)
}
