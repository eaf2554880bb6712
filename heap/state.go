package heap

import (
	"math/bits"
	"slices"
	"sort"
)

// chunkWords is the stretch of address space that one chunk's columns cover: 256 KiB, so that an offset fits 16 bits.
const (
	chunkShift = 15
	chunkWords = 1 << chunkShift
)

// atLeast marks a birth that is the newest one possible: the object may be older.
const atLeast = 1 << 31

// A birth may also say in which kind of space its object stood when MarkSpaces was called: in the three bits below, so births are below MaxMarked.
const (
	spaceShift = 28
	spaceMarks = 7 << spaceShift
	MaxMarked  = 1 << spaceShift
)

// Object is one object of the state. Addr and Words are in words of 8 bytes from the heap base. Birth is the collection number of the phase
// it was allocated in or, without a sample, of the collection that first saw it. AtLeast says that the object's identity is not proven
// through a full collection or that it was there before the recording: it is this one or another of the same type, and its age is at least
// what Birth says. Sample is the id of its sample, 0 if it has none.
type Object struct {
	Addr, Words, Length uint64
	Type, Birth         uint32
	AtLeast             bool
	Sample              uint64
}

// chunk holds the objects of a stretch as columns of equal length, sorted by offset unless dirty. 6 to 10 bytes an object.
type chunk struct {
	off     []uint16
	code    []uint32
	birth   []uint32 // with the mark atLeast; nil: all are same
	same    uint32
	dirty   bool
	loose   bool       // samples are not sorted
	samples []sampleAt // sorted by offset unless loose; the last of one offset counts
	owner   uint32     // the state that may write to it (State.id); others that hold it only read
	lent    bool       // off, code and birth are another chunk's too
	stamp   uint32     // State.stamp when it was last written to
}

type sampleAt struct {
	off uint16
	id  uint64
}

// State is the heap after a collection, as columns over stretches of address space; never one Go value per object.
type State struct {
	chunks map[uint64]*chunk
	codes  *codes
	n      int
	near   [nearChunks]struct { // chunks that were last written to
		k uint64
		c *chunk
	}
	marks   uint32 // what in a birth is not a collection's number: atLeast and, if they are set, spaceMarks
	perType []Count
	spare   []*chunk         // empty ones, for reuse
	id      uint32           // of which chunks it is the owner
	pages   map[uint64]*page // that some of the chunks may be of, of a kept state
	stamp   uint32           // grows with each look of Places
	counted bool             // it holds no objects: perType, n and bytes are kept by counts.go
	bytes   uint64           // if counted
}

// nearChunks is how many chunks are found without a lookup: a collection fills a few buffers side by side.
const nearChunks = 64

func nearSlot(k uint64) uint64 { return k * 0x9e3779b97f4a7c15 >> 58 }

// maxSpare bounds the empty chunks that are kept: survivor spaces come and go with each collection.
const maxSpare = 256

// Count is objects and bytes.
type Count struct{ Objects, Bytes uint64 }

func newState() *State {
	return &State{chunks: map[uint64]*chunk{}, codes: &codes{}, marks: atLeast, id: newOwner()}
}

// Objects is the number of objects in the state.
func (s *State) Objects() int { return s.n }

// Bytes is their sum.
func (s *State) Bytes() uint64 {
	if s.counted {
		return s.bytes
	}
	sum := uint64(0)
	for i, n := range s.codes.count {
		sum += n * s.codes.words[i] * 8
	}
	return sum
}

// PerType gives objects and bytes by type id, of ids below 2^22. It stays the state's, until the next call.
func (s *State) PerType() []Count {
	if s.counted {
		return s.perType
	}
	clear(s.perType)
	for i, n := range s.codes.count {
		t := s.codes.typ[i]
		if n == 0 || t >= denseTypes {
			continue
		}
		if grow := int(t) + 1 - len(s.perType); grow > 0 {
			s.perType = append(s.perType, make([]Count, grow)...)
		}
		s.perType[t].Objects += n
		s.perType[t].Bytes += n * s.codes.words[i] * 8
	}
	return s.perType
}

// Lengths calls f for each type and length of which there are objects, and says how many; what has no length has 0.
func (s *State) Lengths(f func(typ uint32, length, objects uint64)) {
	for i, n := range s.codes.count {
		if n > 0 {
			f(s.codes.typ[i], s.codes.length[i], n)
		}
	}
}

// writable gives the chunk of number k to add to.
func (s *State) writable(k uint64) *chunk {
	n := &s.near[nearSlot(k)]
	if n.c != nil && n.k == k {
		return n.c
	}
	c := s.chunks[k]
	if c == nil {
		if i := len(s.spare); i > 0 {
			c, s.spare = s.spare[i-1], s.spare[:i-1]
		} else {
			c = &chunk{}
		}
		c.owner = s.id
		s.chunks[k] = c
	}
	c = s.own(k, c)
	n.k, n.c = k, c
	return c
}

func (s *State) drop(k uint64) {
	if c := s.chunks[k]; len(s.spare) < maxSpare && c.owner == s.id && !c.lent {
		*c = chunk{off: c.off[:0], code: c.code[:0], samples: c.samples[:0]}
		s.spare = append(s.spare, c)
	}
	delete(s.chunks, k)
	if n := &s.near[nearSlot(k)]; n.k == k {
		n.c = nil
	}
}

// put adds an object that is not there. birth carries the mark.
func (s *State) put(addr uint64, code, birth uint32) {
	s.codes.count[code]++
	s.n++
	s.lay(addr, code, birth)
}

// lay is put of an object that counts already.
func (s *State) lay(addr uint64, code, birth uint32) {
	c := s.writable(addr >> chunkShift)
	off := uint16(addr & (chunkWords - 1))
	n := len(c.off)
	if n > 0 && c.off[n-1] >= off {
		c.dirty = true
	}
	c.off = append(c.off, off)
	c.code = append(c.code, code)
	switch {
	case c.birth != nil:
		c.birth = append(c.birth, birth)
	case n == 0:
		c.same = birth
	case c.same != birth:
		c.spread()
		c.birth = append(c.birth[:n], birth)
	}
}

// spread makes a column of births.
func (c *chunk) spread() {
	if c.birth != nil {
		return
	}
	c.birth = make([]uint32, len(c.off), cap(c.off))
	for i := range c.birth {
		c.birth[i] = c.same
	}
}

func (c *chunk) born(i int) uint32 {
	if c.birth == nil {
		return c.same
	}
	return c.birth[i]
}

// mark puts a sample on the offset.
func (c *chunk) mark(off uint16, id uint64) {
	if n := len(c.samples); n > 0 && c.samples[n-1].off > off {
		c.loose = true
	}
	c.samples = append(c.samples, sampleAt{off, id})
}

func (s *State) add(o Object) {
	birth := o.Birth
	if o.AtLeast {
		birth |= atLeast
	}
	s.put(o.Addr, s.codes.of(o.Type, o.Length, o.Words), birth)
	if o.Sample != 0 {
		s.writable(o.Addr>>chunkShift).mark(uint16(o.Addr&(chunkWords-1)), o.Sample)
	}
}

// tidy sorts a chunk and its samples.
func (s *State) tidy(c *chunk) {
	if c.loose {
		c.loose = false
		slices.SortStableFunc(c.samples, func(a, b sampleAt) int { return int(a.off) - int(b.off) })
	}
	if c.dirty {
		s.order(c)
	}
}

// order sorts a chunk's columns. Of two objects at one address, which only a corrupt stream has, the newer stays.
func (s *State) order(c *chunk) {
	c.dirty = false
	// Counting sort: the offsets as a bitmap, and where each stood.
	var there [chunkWords / 64]uint64
	var at [chunkWords]int32
	for i, o := range c.off {
		bit := uint64(1) << (o % 64)
		if there[o/64]&bit != 0 {
			s.codes.count[c.code[at[o]]]--
			s.n--
		}
		there[o/64] |= bit
		at[o] = int32(i)
	}
	code := slices.Clone(c.code)
	var birth []uint32
	if c.birth != nil {
		birth = slices.Clone(c.birth)
	}
	n := 0
	for i, w := range there {
		for ; w != 0; w &= w - 1 {
			o := i*64 + bits.TrailingZeros64(w)
			c.off[n], c.code[n] = uint16(o), code[at[o]]
			if birth != nil {
				c.birth[n] = birth[at[o]]
			}
			n++
		}
	}
	c.off, c.code = c.off[:n], c.code[:n]
	if birth != nil {
		c.birth = c.birth[:n]
	}
}

// sampleOf gives the sample at the offset, 0 if there is none. The chunk must be tidy.
func (c *chunk) sampleOf(off uint16) uint64 {
	if len(c.samples) == 0 {
		return 0
	}
	i := sort.Search(len(c.samples), func(i int) bool { return c.samples[i].off > off })
	if i > 0 && c.samples[i-1].off == off {
		return c.samples[i-1].id
	}
	return 0
}

func (s *State) at(k uint64, c *chunk, i int) Object {
	code, b := c.code[i], c.born(i)
	return Object{Addr: k<<chunkShift | uint64(c.off[i]), Words: s.codes.words[code], Length: s.codes.length[code], Type: s.codes.typ[code],
		Birth: b &^ s.marks, AtLeast: b&atLeast != 0, Sample: c.sampleOf(c.off[i])}
}

// keys gives the chunks that overlap [start, end), in order.
func (s *State) keys(out []uint64, start, end uint64) []uint64 {
	lo, hi := start>>chunkShift, (end+chunkWords-1)>>chunkShift
	if hi-lo < uint64(len(s.chunks)) {
		for k := lo; k < hi; k++ {
			if s.chunks[k] != nil {
				out = append(out, k)
			}
		}
		return out
	}
	for k := range s.chunks {
		if k >= lo && k < hi {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// cut removes the objects i to j of chunk k from its columns; what they were has been counted.
func (s *State) cut(k uint64, c *chunk, i, j int) {
	if i == 0 && j == len(c.off) {
		s.drop(k)
		return
	}
	if i == j {
		return
	}
	c = s.own(k, c)
	from, to := c.off[i], c.off[j-1]
	c.off = slices.Delete(c.off, i, j)
	c.code = slices.Delete(c.code, i, j)
	if c.birth != nil {
		c.birth = slices.Delete(c.birth, i, j)
	}
	if len(c.samples) > 0 {
		c.samples = slices.DeleteFunc(c.samples, func(s sampleAt) bool { return s.off >= from && s.off <= to })
	}
}

// find gives where the object at addr stands.
func (s *State) find(addr uint64) (*chunk, int, bool) {
	c := s.chunks[addr>>chunkShift]
	if c == nil {
		return nil, 0, false
	}
	if c.dirty {
		s.order(c)
	}
	i, ok := slices.BinarySearch(c.off, uint16(addr&(chunkWords-1)))
	return c, i, ok
}

// setSample attaches a sample to the object at addr, and the birth that the sample says; false if nothing stands there.
func (s *State) setSample(addr, id, birth uint64) bool {
	c, i, ok := s.find(addr)
	if ok {
		k := addr >> chunkShift
		c = s.ownSamples(k, c)
		c.mark(c.off[i], id)
		if b := uint32(birth) | c.born(i)&s.marks&^atLeast; birth < atLeast && c.born(i) != b {
			s.own(k, c).setBirth(i, b)
		}
	}
	return ok
}

// level gives up the column of births if all are the same.
func (c *chunk) level() {
	if len(c.birth) == 0 {
		return
	}
	for _, b := range c.birth {
		if b != c.birth[0] {
			return
		}
	}
	c.same, c.birth = c.birth[0], nil
}

// setBirth says when the object that stands at index i of a chunk was allocated.
func (c *chunk) setBirth(i int, birth uint32) {
	if c.birth == nil && c.same == birth {
		return
	}
	c.spread()
	c.birth[i] = birth
}

// Each calls f for each object in order of address until f returns false.
func (s *State) Each(f func(Object) bool) {
	for _, k := range s.keys(nil, 0, 1<<46) {
		c := s.chunks[k]
		s.tidy(c)
		for i := range c.off {
			if !f(s.at(k, c, i)) {
				return
			}
		}
	}
}

// renumber drops the codes that no object has if they are many.
func (s *State) renumber() {
	if len(s.codes.typ) < s.codes.limit {
		return
	}
	next, to := s.codes.trimmed()
	if next == nil {
		return
	}
	for k, c := range s.chunks {
		c = s.own(k, c)
		for i, code := range c.code {
			c.code[i] = to[code]
		}
	}
	s.codes = next
}

// taker walks over what stands in a range, in order of address, and takes it out: each object either moves or dies.
type taker struct {
	s          *State
	start, end uint64
	keys       []uint64
	ki         int
	c          *chunk // of keys[ki], nil if not entered
	from, i, j int    // the part of c in the range; i is the next
	sample     int
}

// begin ends the range before and starts with [start, start+words).
func (t *taker) begin(start, words uint64) {
	t.finish()
	t.start, t.end = start, start+words
	t.keys, t.ki, t.c = t.s.keys(t.keys[:0], t.start, t.end), 0, nil
}

func (t *taker) enter() {
	k := t.keys[t.ki]
	t.c = t.s.chunks[k]
	t.s.tidy(t.c)
	base := k << chunkShift
	t.from, t.j = 0, len(t.c.off)
	if base < t.start {
		t.from, _ = slices.BinarySearch(t.c.off, uint16(t.start-base))
	}
	if t.end-base < chunkWords {
		t.j, _ = slices.BinarySearch(t.c.off, uint16(t.end-base))
	}
	t.i, t.sample = t.from, 0
}

// leave lets die what is left of the chunk and goes to the next.
func (t *taker) leave() {
	count := t.s.codes.count
	for _, code := range t.c.code[t.i:t.j] {
		count[code]--
	}
	t.s.n -= t.j - t.i
	t.s.cut(t.keys[t.ki], t.c, t.from, t.j)
	t.c = nil
	t.ki++
}

// take gives code, birth and sample of the object at addr, which leaves its place without having died: it still counts. Addresses must not descend.
func (t *taker) take(addr uint64) (code, birth uint32, sample uint64, ok bool) {
	k := addr >> chunkShift
	for t.ki < len(t.keys) {
		if t.c == nil {
			if t.keys[t.ki] > k {
				return 0, 0, 0, false
			}
			t.enter()
		}
		if t.keys[t.ki] < k {
			t.leave()
			continue
		}
		if t.keys[t.ki] > k {
			return 0, 0, 0, false
		}
		c, off := t.c, uint16(addr&(chunkWords-1))
		for t.i < t.j && c.off[t.i] < off {
			t.s.codes.count[c.code[t.i]]--
			t.s.n--
			t.i++
		}
		if t.i == t.j || c.off[t.i] != off {
			return 0, 0, 0, false
		}
		code, birth = c.code[t.i], c.born(t.i)
		if len(c.samples) > 0 {
			for t.sample < len(c.samples) && c.samples[t.sample].off < off {
				t.sample++
			}
			for t.sample < len(c.samples) && c.samples[t.sample].off == off {
				sample = c.samples[t.sample].id
				t.sample++
			}
		}
		t.i++
		return code, birth, sample, true
	}
	return 0, 0, 0, false
}

// finish ends the range.
func (t *taker) finish() {
	for t.ki < len(t.keys) {
		if t.c == nil {
			t.enter()
		}
		t.leave()
	}
	t.keys, t.ki = t.keys[:0], 0
}

// moved holds what left its place, or was born, and waits for its new one; it counts already.
type moved struct {
	dest   []uint64
	code   []uint32
	birth  []uint32
	sample []struct {
		i  int
		id uint64
	}
}

func (m *moved) add(dest uint64, code, birth uint32, sample uint64) {
	if sample != 0 {
		m.sample = append(m.sample, struct {
			i  int
			id uint64
		}{len(m.dest), sample})
	}
	m.dest = append(m.dest, dest) // one by one: only then is a pointer written no more than when it grows
	m.code = append(m.code, code)
	m.birth = append(m.birth, birth)
}

// settle puts all of it into s.
func (m *moved) settle(s *State) {
	for i, d := range m.dest {
		s.lay(d, m.code[i], m.birth[i])
	}
	for _, x := range m.sample {
		d := m.dest[x.i]
		s.writable(d>>chunkShift).mark(uint16(d&(chunkWords-1)), x.id)
	}
}

// lose counts all of it out of s: it has no place.
func (m *moved) lose(s *State) {
	for _, code := range m.code {
		s.codes.count[code]--
		s.n--
	}
}

// clear empties it; what it holds stays allocated unless it is much.
func (m *moved) clear() {
	const keep = 1 << 20
	if cap(m.dest) > keep {
		*m = moved{}
	}
	m.dest, m.code, m.birth, m.sample = m.dest[:0], m.code[:0], m.birth[:0], m.sample[:0]
}
