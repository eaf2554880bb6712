package heap

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sort"
	"sync"

	"github.com/heapcam/heapcam/trace"
)

// Want says which properties of objects Fold keeps apart beside the type.
type Want uint8

// The properties.
const (
	WantLength Want = 1 << iota // length and size
	WantBirth
	WantSpace
	WantAddr
	WantSamples // stack and thread of sampled objects, and with them whether the birth is after Replayer.First
)

// SpaceAt is a space, or a region of G1, of a state: [Start, End) in words.
type SpaceAt struct {
	Start, End uint64
	Kind       uint64 // trace.SpaceEden …
	Index      int    // of the region on G1; of the survivor space elsewhere
}

// Spaces gives the spaces of the state that stands after c, by address; those without a place in the recording are left out.
func (r *Replayer) Spaces(c *Collection) []SpaceAt {
	var out []SpaceAt
	if words := r.JVM.RegionWords; words > 0 {
		at, i := uint64(0), 0
		for _, run := range r.regions {
			for n := uint64(0); n < run.Run && len(out) < 1<<20 && at < trace.MaxAddr-words; n++ {
				if run.Kind != trace.SpaceFree {
					out = append(out, SpaceAt{at, at + words, run.Kind, i})
				}
				at += words
				i++
			}
		}
		return out
	}
	survivors := 0
	for _, s := range c.Spaces {
		if s.End > s.Bottom {
			a := SpaceAt{Start: s.Bottom, End: s.End, Kind: s.Kind}
			if s.Kind == trace.SpaceSurvivor {
				a.Index = survivors
				survivors++
			}
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b SpaceAt) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// Folded is a distinct combination of properties. What was not wanted is zero, Space -1.
type Folded struct {
	Type           uint32
	Length, Words  uint64 // of each object
	Birth          uint32
	AtLeast        bool
	Space          int
	Was            uint64 // with WantBirth, after MarkSpaces: kind of the space where the objects stood then, 0 if they were not there or it is not known
	Addr           uint64 // words, the start of its range
	Objects, Bytes uint64

	Sampled       bool
	Frame, Thread uint64
	Samples       []*Sample // the objects, if they are sampled
}

// Era gives what is left of a birth where births are only told apart by eras, collections in ascending order: the first of them that it is not
// after, or the one after the last.
func Era(birth uint32, eras []uint32) uint32 {
	for _, e := range eras {
		if birth <= e {
			return e
		}
	}
	return eras[len(eras)-1] + 1
}

// ErrFold says that a state has more distinct combinations than Fold may give.
var ErrFold = errors.New("too many distinct combinations of properties: take fewer or coarser classifiers (a larger address range)")

// maxFolded bounds the combinations.
const maxFolded = 1 << 22

// foldKey is what combinations differ in, apart from samples. group is the code or, without WantLength, the type.
type foldKey struct {
	group, birth uint32 // birth with the mark
	space        int32
	addr         uint64
}

// cell counts.
type cell struct{ objects, words uint64 }

// foldSampled is what combinations of sampled objects differ in.
type foldSampled struct {
	foldKey
	frame, thread uint64
}

// part of a table: of one space and range of addresses.
type foldTable struct {
	space int32
	addr  uint64
	keys  []uint64 // group<<32|birth, +1; 0 is empty
	count []cell
	used  int
}

func (t *foldTable) at(key uint64) *cell {
	if 2*t.used >= len(t.keys) {
		t.grow()
	}
	mask := uint64(len(t.keys) - 1)
	h := key * 0x9e3779b97f4a7c15
	for h = (h ^ h>>32) & mask; ; h = (h + 1) & mask {
		switch t.keys[h] {
		case key + 1:
			return &t.count[h]
		case 0:
			t.keys[h] = key + 1
			t.used++
			return &t.count[h]
		}
	}
}

func (t *foldTable) grow() {
	keys, count := t.keys, t.count
	n := max(64, 2*len(keys))
	t.keys, t.count, t.used = make([]uint64, n), make([]cell, n), 0
	for i, k := range keys {
		if k != 0 {
			*t.at(k - 1) = count[i]
		}
	}
}

// sampledTable tells samples apart by what they differ in: open addressing, the samples of each kept in one piece at the end.
type sampledTable struct {
	slot  []int32 // 1 + place in all
	all   []sampledGroup
	taken []takenSample
}

type sampledGroup struct {
	key   foldSampled
	n     int32
	bytes uint64
}

type takenSample struct {
	s     *Sample
	bytes uint64
	of    int32 // place in all
}

func (k *foldSampled) hash() uint64 {
	const m = 0x9e3779b97f4a7c15
	h := (k.frame ^ k.thread<<40 ^ uint64(k.group)<<20) * m
	h = (h ^ h>>29 ^ uint64(k.birth)<<32 ^ k.addr ^ uint64(uint32(k.space))) * m
	return h ^ h>>32
}

// size makes room for n samples.
func (t *sampledTable) size(n int) {
	t.taken, t.all = make([]takenSample, 0, n), make([]sampledGroup, 0, n)
	room := 256
	for room < 2*n {
		room *= 2
	}
	t.slot = make([]int32, room)
}

func (t *sampledTable) add(k foldSampled, s *Sample, bytes uint64) {
	at := t.number(k)
	g := &t.all[at]
	g.n++
	g.bytes += bytes
	t.taken = append(t.taken, takenSample{s, bytes, at})
}

// number gives the place of a key in all.
func (t *sampledTable) number(k foldSampled) int32 {
	if 2*len(t.all) >= len(t.slot) {
		t.slot = make([]int32, max(256, 2*len(t.slot)))
		for i := range t.all {
			*t.find(&t.all[i].key) = int32(i + 1)
		}
	}
	at := t.find(&k)
	if *at == 0 {
		t.all = append(t.all, sampledGroup{key: k})
		*at = int32(len(t.all))
	}
	return *at - 1
}

// find gives the slot of a key, or the empty one that it takes.
func (t *sampledTable) find(k *foldSampled) *int32 {
	mask := uint64(len(t.slot) - 1)
	for h := k.hash() & mask; ; h = (h + 1) & mask {
		if i := t.slot[h]; i == 0 || t.all[i-1].key == *k {
			return &t.slot[h]
		}
	}
}

// samples gives the samples of all, those of each side by side.
func (t *sampledTable) samples() []*Sample {
	next := make([]int32, len(t.all))
	for i, sum := 0, int32(0); i < len(next); i++ {
		next[i] = sum
		sum += t.all[i].n
	}
	out := make([]*Sample, len(t.taken))
	for i := range t.taken {
		x := &t.taken[i]
		out[next[x.of]] = x.s
		next[x.of]++
	}
	return out
}

// byID puts all in the order of the samples' ids: groups by the first of theirs.
func (t *sampledTable) byID() {
	less := func(a, b takenSample) int { return cmp.Compare(a.s.ID, b.s.ID) }
	if slices.IsSortedFunc(t.taken, less) { // then the groups are, too: each began with its first
		return
	}
	slices.SortStableFunc(t.taken, less)
	all, to := make([]sampledGroup, 0, len(t.all)), make([]int32, len(t.all))
	for i := range t.taken {
		of := &t.taken[i].of
		if to[*of] == 0 {
			all = append(all, t.all[*of])
			to[*of] = int32(len(all))
		}
		*of = to[*of] - 1
	}
	t.all, t.slot = all, nil
}

// folded adds the groups to out. What tells the objects apart is for describe to say.
func (t *sampledTable) folded(out []Folded, describe func(*Folded, foldKey)) []Folded {
	samples := t.samples()
	for i := range t.all {
		g := &t.all[i]
		out = append(out, Folded{Objects: uint64(g.n), Bytes: g.bytes, Sampled: true, Frame: g.key.frame, Thread: g.key.thread, Samples: samples[:g.n:g.n]})
		describe(&out[len(out)-1], g.key.foldKey)
		samples = samples[g.n:]
	}
	return out
}

// folder is the work of one goroutine.
type folder struct {
	r       *Replayer
	s       *State
	want    Want
	spaces  []SpaceAt
	shift   uint
	group   []uint32 // by code
	groups  uint32
	eras    []uint32 // unless nil, births are only told apart by Era
	live    func(id uint64) *Sample
	tables  map[[2]uint64]*foldTable
	sampled sampledTable
	births  []uint32              // that are told apart, with marks; the first denseBirths of them are counted in dense
	number  [16][]uint16          // by mark and birth: 1 + its place in births, 0 until asked
	dense   [denseBirths][]uint32 // by place in births: objects by code
	touched [denseBirths][]uint32
	most    int        // of them
	cur     *foldTable // that dense counts for
	used    int
	err     error
}

// denseBirths bounds the births for which objects are counted by code, maxDense the counters for that, maxNumbered the births that are looked up by
// their number.
const denseBirths, maxDense, maxNumbered = 40, 1 << 22, 1 << 20

// birthAt gives the place of a birth, with its mark, among those that are told apart; denseBirths or more if it has none.
func (f *folder) birthAt(b uint32) int {
	mark, n := b>>spaceShift, int(b&(MaxMarked-1))
	if f.s.marks&spaceMarks == 0 {
		mark, n = b>>31, int(b&^atLeast)
	}
	t := f.number[mark]
	if n < len(t) && t[n] != 0 {
		return int(t[n] - 1)
	}
	told := f.birth(b)
	i := slices.Index(f.births, told)
	if i < 0 {
		if len(f.births) >= f.most {
			i = denseBirths
		} else {
			i = len(f.births)
			f.births = append(f.births, told)
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
			x.words += n * f.s.codes.words[code]
			dense[code] = 0
		}
		f.touched[i] = f.touched[i][:0]
	}
	f.used += f.cur.used - before
}

// Fold counts the objects of the state by the properties that are wanted. spaces are those of Spaces, for WantSpace; grain is the size of the
// ranges of addresses in words, a power of two, for WantAddr. With eras, births are only told apart by them (Era): all births would multiply the
// combinations. WantSamples without WantBirth has one era: an object without a sample may be older than all samples, and more is not asked of it.
// Its error is ErrFold. A replay that only counts (NewCounter) folds by type alone, and nothing else may be wanted of it.
func (r *Replayer) Fold(want Want, spaces []SpaceAt, grain uint64, eras ...uint32) ([]Folded, error) {
	s := r.State
	if r.sites != nil && want == WantSamples {
		return r.foldSites()
	}
	if want&(WantSamples|WantBirth) == WantSamples {
		eras = []uint32{uint32(r.First)}
	}
	if eras != nil {
		want |= WantBirth
	}
	if want&^WantLength == 0 { // the dictionary counts
		var out []Folded
		if want == 0 && s.counted {
			for id, n := range s.perType {
				if n.Objects > 0 {
					out = append(out, Folded{Type: uint32(id), Space: -1, Objects: n.Objects, Bytes: n.Bytes})
				}
			}
			return out, nil
		}
		if want == 0 {
			by := map[uint32]*Folded{}
			for i, n := range s.codes.count {
				if n > 0 {
					f := by[s.codes.typ[i]]
					if f == nil {
						f = &Folded{Type: s.codes.typ[i], Space: -1}
						by[f.Type] = f
					}
					f.Objects += n
					f.Bytes += n * s.codes.words[i] * 8
				}
			}
			for _, f := range by {
				out = append(out, *f)
			}
			return out, nil
		}
		for i, n := range s.codes.count {
			if n > 0 {
				out = append(out, Folded{Type: s.codes.typ[i], Length: s.codes.length[i], Words: s.codes.words[i], Space: -1, Objects: n, Bytes: n * s.codes.words[i] * 8})
			}
		}
		return out, nil
	}
	keys := s.keys(nil, 0, 1<<46)
	group := make([]uint32, len(s.codes.typ))
	for i := range group {
		group[i] = uint32(i)
		if want&WantLength == 0 {
			group[i] = s.codes.typ[i]
		}
	}
	top := uint32(0)
	for _, g := range group {
		top = max(top, g)
	}
	if want&WantLength == 0 && top >= denseTypes { // ids that no honest probe gives
		ids, at := map[uint32]uint32{}, uint32(0)
		for i, g := range group {
			id, ok := ids[g]
			if !ok {
				id = uint32(i)
				ids[g] = id
			}
			group[i], at = id, max(at, id)
		}
		top = at
	}
	// What is out of order is put in order first: that changes the state's counts, which goroutines share.
	for _, k := range keys {
		s.tidy(s.chunks[k])
	}
	live, done := r.samples()
	defer done()
	var fs []*folder
	var wg sync.WaitGroup
	var parts []part
	left := 0 // work
	for len(parts) > 0 || len(fs) == 0 {
		f := &folder{r: r, s: s, want: want, spaces: spaces, group: group, tables: map[[2]uint64]*foldTable{}, groups: top + 1, eras: eras, live: live, most: min(denseBirths, max(1, maxDense/(len(group)+1)))}
		for uint64(1)<<f.shift < grain && f.shift < 45 {
			f.shift++
		}
		fs = append(fs, f)
		if len(fs) == 1 {
			parts, left = f.parts(keys)
			left = max(left/2, 1<<17)
		}
		n, samples := 0, 0
		for ; n < len(parts) && (left > 0 || len(fs) == 2); n++ {
			left -= parts[n].work
			for _, k := range parts[n].keys {
				samples += len(s.chunks[k].samples)
			}
		}
		mine := parts[:n]
		parts = parts[n:]
		if want&WantSamples != 0 {
			f.sampled.size(samples)
		}
		wg.Go(func() {
			for _, x := range mine {
				if f.err == nil {
					f.part(x)
				}
			}
			f.flush()
		})
	}
	wg.Wait()
	for _, f := range fs[1:] {
		fs[0].merge(f)
	}
	return fs[0].result()
}

// MarkSpaces marks each object of the state with the kind of the space, of those of Spaces, that it stands in; Fold tells it of those that are left
// after any later collection. The mark goes with the object's identity. Numbers of collections must be below MaxMarked.
func (r *Replayer) MarkSpaces(spaces []SpaceAt) {
	s := r.State
	s.marks |= spaceMarks
	for _, k := range s.keys(nil, 0, 1<<46) {
		c := s.own(k, s.chunks[k])
		s.tidy(c)
		base := k << chunkShift
		at, _ := slices.BinarySearchFunc(spaces, base, func(a SpaceAt, base uint64) int { return cmp.Compare(a.End, base+1) })
		for ; at < len(spaces) && spaces[at].Start < base+chunkWords; at++ {
			mark := uint32(spaces[at].Kind&7) << spaceShift
			if spaces[at].Start <= base && spaces[at].End >= base+chunkWords && c.birth == nil {
				c.same |= mark
				break
			}
			c.spread()
			for i, off := range c.off {
				if a := base | uint64(off); a >= spaces[at].Start && a < spaces[at].End {
					c.birth[i] |= mark
				}
			}
		}
	}
}

// chunk counts a chunk, in stretches that lie in one space and one range.
func (f *folder) chunk(k uint64, c *chunk) {
	base := k << chunkShift
	for i := 0; i < len(c.off); {
		at := base | uint64(c.off[i])
		space, end := int32(-1), base+chunkWords
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
		j := len(c.off)
		if end < base+chunkWords {
			j, _ = slices.BinarySearch(c.off, uint16(end-base))
		}
		if f.stretch(c, i, j, space, addr); f.err != nil {
			return
		}
		i = j
	}
}

// birth gives what of a birth, with its mark, is told apart.
func (f *folder) birth(b uint32) uint32 {
	if f.eras != nil {
		return Era(b&^f.s.marks, f.eras) | b&f.s.marks
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

// table gives the table of a space and range, which dense counts for from then on.
func (f *folder) table(space int32, addr uint64) *foldTable {
	tk := [2]uint64{uint64(uint32(space)), addr}
	t := f.tables[tk]
	if t == nil {
		t = &foldTable{space: space, addr: addr}
		f.tables[tk] = t
	}
	if t != f.cur {
		f.flush()
		f.cur = t
	}
	return t
}

func (f *folder) stretch(c *chunk, i, j int, space int32, addr uint64) {
	t := f.table(space, addr)
	before := t.used
	words := f.s.codes.words
	if c.birth == nil || f.want&WantBirth == 0 {
		birth := uint32(0)
		if f.want&WantBirth != 0 {
			birth = c.same
		}
		if at := f.birthAt(birth); at < denseBirths {
			f.touched[at] = count(f.dense[at], c.code[i:j], f.touched[at])
		} else {
			birth = f.birth(birth)
			for _, code := range c.code[i:j] {
				x := t.at(uint64(f.group[code])<<32 | uint64(birth))
				x.objects++
				x.words += words[code]
			}
		}
	} else {
		births := c.birth[i:j]
		last := births[0]
		at := f.birthAt(last)
		for n, code := range c.code[i:j] {
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
	if f.want&WantSamples != 0 && len(c.samples) > 0 {
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
func (f *folder) samples(c *chunk, i, j int, t *foldTable) {
	from, to := c.off[i], c.off[j-1]
	at := sort.Search(len(c.samples), func(n int) bool { return c.samples[n].off >= from })
	o := i
	for ; at < len(c.samples) && c.samples[at].off <= to; at++ {
		sa := c.samples[at]
		if at+1 < len(c.samples) && c.samples[at+1].off == sa.off { // the last of one offset counts
			continue
		}
		x := f.live(sa.id)
		if x == nil {
			continue
		}
		for o < j && c.off[o] < sa.off {
			o++
		}
		if o == j || c.off[o] != sa.off {
			continue
		}
		code, birth := c.code[o], f.birth(c.born(o))
		g := f.group[code]
		n := t.at(uint64(g)<<32 | uint64(birth))
		n.objects--
		n.words -= f.s.codes.words[code]
		f.sampled.add(foldSampled{foldKey{g, birth, t.space, t.addr}, x.Frame, x.Thread}, x, f.s.codes.words[code]*8)
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
		d.Type, d.Space, d.Addr = f.s.codes.typ[code], int(k.space), k.addr
		if f.want&WantLength != 0 {
			d.Length, d.Words = f.s.codes.length[code], f.s.codes.words[code]
		}
		if f.want&WantBirth != 0 {
			d.Birth, d.AtLeast = k.birth&^f.s.marks, k.birth&atLeast != 0
			d.Was = uint64(k.birth & f.s.marks &^ atLeast >> spaceShift)
		}
	}
	room := len(f.sampled.all)
	for _, t := range f.tables {
		room += t.used
	}
	out := make([]Folded, 0, room)
	for _, k := range slices.SortedFunc(maps.Keys(f.tables), func(a, b [2]uint64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }) {
		t := f.tables[k]
		for i, key := range t.keys {
			if n := t.count[i]; key != 0 && n.objects > 0 {
				d := Folded{Objects: n.objects, Bytes: n.words * 8}
				describe(&d, foldKey{uint32((key - 1) >> 32), uint32(key - 1), t.space, t.addr})
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

// EachSample calls f for each sampled object of the state with its address in words, by address.
func (r *Replayer) EachSample(f func(addr uint64, s *Sample)) {
	st := r.State
	for _, k := range st.keys(nil, 0, 1<<46) {
		c := st.chunks[k]
		if len(c.samples) == 0 {
			continue
		}
		st.tidy(c)
		for i, sa := range c.samples {
			if i+1 < len(c.samples) && c.samples[i+1].off == sa.off { // the last of one offset counts
				continue
			}
			if s := r.Sample(sa.id); s != nil {
				f(k<<chunkShift|uint64(sa.off), s)
			}
		}
	}
}
