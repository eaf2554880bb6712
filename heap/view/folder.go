package view

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"github.com/heapcam/heapcam/heap/samples"
	"github.com/heapcam/heapcam/heap/state"
)

// folder is the work of one goroutine.
type folder struct {
	v       *View
	s       *state.State
	want    Want
	spaces  []SpaceAt
	shift   uint
	group   []uint32 // by code
	groups  uint32
	eras    []uint32 // unless nil, births are only distinguished by Era
	live    func(id uint64) *samples.Sample
	tables  map[[2]uint64]*foldTable
	sampled sampledTable
	births  []uint32              // distinguished, with marks; the first denseBirths of them are counted in dense
	number  [16][]uint16          // by mark and birth: 1 + its place in births, 0 until asked
	dense   [denseBirths][]uint32 // by place in births: objects by code
	touched [denseBirths][]uint32
	most    int        // of them
	cur     *foldTable // that dense counts for
	used    int
	err     error
}

// denseBirths bounds the births for which objects are counted by code, maxDense the counters for that, maxNumbered the
// births that are looked up by their number.
const denseBirths, maxDense, maxNumbered = 40, 1 << 22, 1 << 20

// birthAt gives the place of a birth, with its mark, among those that are distinguished; denseBirths or more if it has
// none.
func (f *folder) birthAt(b uint32) int {
	mark, n := b>>state.SpaceShift, int(b&(state.MaxMarked-1))
	if f.s.Marks&state.SpaceMarks == 0 {
		mark, n = b>>31, int(b&^state.AtLeastMark)
	}
	t := f.number[mark]
	if n < len(t) && t[n] != 0 {
		return int(t[n] - 1)
	}
	distinct := f.birth(b)
	i := slices.Index(f.births, distinct)
	if i < 0 {
		if len(f.births) >= f.most {
			i = denseBirths
		} else {
			i = len(f.births)
			f.births = append(f.births, distinct)
			f.dense[i] = make([]uint32, len(f.group))
		}
	}
	if n < maxNumbered {
		if n >= len(t) {
			t = append(t, make([]uint16, n+1-len(t))...)
			f.number[mark] = t
		}
		t[n] = uint16(i + 1)
	}
	return i
}

// flush moves what dense has counted into its table.
func (f *folder) flush() {
	if f.cur == nil {
		return
	}
	before := f.cur.used
	for i, birth := range f.births {
		dense := f.dense[i]
		for _, code := range f.touched[i] {
			x := f.cur.at(uint64(f.group[code])<<32 | uint64(birth))
			n := uint64(dense[code])
			x.objects += n
			x.words += n * f.s.Codes.Words[code]
			dense[code] = 0
		}
		f.touched[i] = f.touched[i][:0]
	}
	f.used += f.cur.used - before
}

// chunk counts a chunk, in stretches that lie in one space and one range.
func (f *folder) chunk(k uint64, c *state.Chunk) {
	base := k << state.ChunkShift
	for i := 0; i < len(c.Off); {
		at := base | uint64(c.Off[i])
		space, end := int32(-1), base+state.ChunkWords
		if f.want&WantSpace != 0 {
			j := sort.Search(len(f.spaces), func(j int) bool { return f.spaces[j].End > at })
			if j < len(f.spaces) {
				if f.spaces[j].Start <= at {
					space, end = int32(j), min(end, f.spaces[j].End)
				} else {
					end = min(end, f.spaces[j].Start)
				}
			}
		}
		addr := uint64(0)
		if f.want&WantAddr != 0 {
			addr = at >> f.shift << f.shift
			end = min(end, addr+1<<f.shift)
		}
		j := len(c.Off)
		if end < base+state.ChunkWords {
			j, _ = slices.BinarySearch(c.Off, uint16(end-base))
		}
		f.labelled(base, c.Off, i, j, func(i, j int, label uint32) { f.stretch(c, i, j, f.table(space, addr, label)) })
		if f.err != nil {
			return
		}
		i = j
	}
}

// birth gives what of a birth, with its mark, is distinguished.
func (f *folder) birth(b uint32) uint32 {
	if f.eras != nil {
		return Era(b&^f.s.Marks, f.eras) | b&f.s.Marks
	}
	return b
}

// count adds the codes to dense and gives touched with those that were 0 there.
func count(dense, codes, touched []uint32) []uint32 {
	for _, code := range codes {
		n := dense[code]
		if n == 0 {
			touched = append(touched, code)
		}
		dense[code] = n + 1
	}
	return touched
}

// table gives the table of a space, range and label, which dense counts for from then on.
func (f *folder) table(space int32, addr uint64, label uint32) *foldTable {
	tk := [2]uint64{uint64(label)<<32 | uint64(uint32(space)), addr}
	t := f.tables[tk]
	if t == nil {
		t = &foldTable{space: space, label: label, addr: addr}
		f.tables[tk] = t
	}
	if t != f.cur {
		f.flush()
		f.cur = t
	}
	return t
}

func (f *folder) stretch(c *state.Chunk, i, j int, t *foldTable) {
	before := t.used
	words := f.s.Codes.Words
	if c.Birth == nil || f.want&WantBirth == 0 {
		birth := uint32(0)
		if f.want&WantBirth != 0 {
			birth = c.Same
		}
		if at := f.birthAt(birth); at < denseBirths {
			f.touched[at] = count(f.dense[at], c.Code[i:j], f.touched[at])
		} else {
			birth = f.birth(birth)
			for _, code := range c.Code[i:j] {
				x := t.at(uint64(f.group[code])<<32 | uint64(birth))
				x.objects++
				x.words += words[code]
			}
		}
	} else {
		births := c.Birth[i:j]
		last := births[0]
		at := f.birthAt(last)
		for n, code := range c.Code[i:j] {
			if b := births[n]; b != last {
				last, at = b, f.birthAt(b)
			}
			if at < denseBirths {
				m := f.dense[at][code]
				if m == 0 {
					f.touched[at] = append(f.touched[at], code)
				}
				f.dense[at][code] = m + 1
				continue
			}
			x := t.at(uint64(f.group[code])<<32 | uint64(f.birth(births[n])))
			x.objects++
			x.words += words[code]
		}
	}
	if f.want&WantSamples != 0 && len(c.Samples) > 0 {
		f.samples(c, i, j, t)
	}
	f.full(t, before)
}

// full ends the fold if there are too many combinations. before is how many of t were counted before.
func (f *folder) full(t *foldTable, before int) {
	if f.used += t.used - before; f.used+len(f.sampled.all) > maxFolded {
		f.err = ErrFold
	}
}

// samples takes the sampled objects of a stretch out of the counts and puts them beside.
func (f *folder) samples(c *state.Chunk, i, j int, t *foldTable) {
	from, to := c.Off[i], c.Off[j-1]
	at := sort.Search(len(c.Samples), func(n int) bool { return c.Samples[n].Off >= from })
	o := i
	for ; at < len(c.Samples) && c.Samples[at].Off <= to; at++ {
		sa := c.Samples[at]
		if at+1 < len(c.Samples) && c.Samples[at+1].Off == sa.Off { // the last of one offset counts
			continue
		}
		x := f.live(sa.ID)
		if x == nil {
			continue
		}
		for o < j && c.Off[o] < sa.Off {
			o++
		}
		if o == j || c.Off[o] != sa.Off {
			continue
		}
		code, birth := c.Code[o], f.birth(c.Born(o))
		g := f.group[code]
		n := t.at(uint64(g)<<32 | uint64(birth))
		n.objects--
		n.words -= f.s.Codes.Words[code]
		k := foldKey{g, birth, t.space, t.label, t.addr}
		f.sampled.add(foldSampled{k, x.Frame, x.Thread}, x, f.s.Codes.Words[code]*8)
	}
}

func (f *folder) merge(o *folder) {
	if f.err == nil {
		f.err = o.err
	}
	for k, t := range o.tables {
		to := f.tables[k]
		if to == nil {
			f.tables[k] = t
			continue
		}
		for i, key := range t.keys {
			if key != 0 {
				x := to.at(key - 1)
				x.objects += t.count[i].objects
				x.words += t.count[i].words
			}
		}
	}
	f.sampled.taken = slices.Grow(f.sampled.taken, len(o.sampled.taken))
	for i := range o.sampled.taken {
		x := &o.sampled.taken[i]
		f.sampled.add(o.sampled.all[x.of].key, x.s, x.bytes)
	}
}

func (f *folder) result() ([]Folded, error) {
	if f.err != nil {
		return nil, f.err
	}
	first := make([]int32, f.groups) // a code of each group, +1
	for code, g := range f.group {
		if first[g] == 0 {
			first[g] = int32(code) + 1
		}
	}
	describe := func(d *Folded, k foldKey) {
		code := first[k.group] - 1
		d.Type, d.Space, d.Addr, d.Label = f.s.Codes.Type[code], int(k.space), k.addr, k.label
		if f.want&WantLength != 0 {
			d.Length, d.Words = f.s.Codes.Length[code], f.s.Codes.Words[code]
		}
		if f.want&WantBirth != 0 {
			d.Birth, d.AtLeast = k.birth&^f.s.Marks, k.birth&state.AtLeastMark != 0
			d.Was = uint64(k.birth & f.s.Marks &^ state.AtLeastMark >> state.SpaceShift)
		}
	}
	room := len(f.sampled.all)
	for _, t := range f.tables {
		room += t.used
	}
	out := make([]Folded, 0, room)
	byPlace := func(a, b [2]uint64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }
	for _, k := range slices.SortedFunc(maps.Keys(f.tables), byPlace) {
		t := f.tables[k]
		for i, key := range t.keys {
			if n := t.count[i]; key != 0 && n.objects > 0 {
				d := Folded{Objects: n.objects, Bytes: n.words * 8}
				describe(&d, foldKey{uint32((key - 1) >> 32), uint32(key - 1), t.space, t.label, t.addr})
				out = append(out, d)
			}
		}
	}
	if f.want&^WantBirth == WantSamples && len(f.eras) == 1 { // as foldSites gives it
		inOrder(out)
		f.sampled.byID()
	}
	return f.sampled.folded(out, describe), nil
}
