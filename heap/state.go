package heap

import "sort"

// chunkWords is the stretch of address space that one chunk's columns cover: 256 KiB, so that an offset fits 16 bits.
const (
	chunkShift = 15
	chunkWords = 1 << chunkShift
)

// Object is one object of the state. Addr and Words in words of 8 bytes from the heap base; Birth is the collection number of the phase it
// was first seen in (a lower bound of its age if not proven), Sample the id of its sample, 0 if it has none.
type Object struct {
	Addr, Words, Length uint64
	Type, Birth         uint32
	Sample              uint64
}

// chunk holds columns of equal length, sorted by offset unless dirty.
type chunk struct {
	off    []uint16
	code   []uint32
	birth  []uint32
	sample []uint32 // index into State.samples, 0: none
	dirty  bool
}

// code is a type and a length: all that objects of one kind share.
type code struct {
	typ    uint32
	length uint64
}

type codeInfo struct {
	code
	words uint64
}

// State is the heap after a collection, as columns over stretches of address space; never one Go value per object.
type State struct {
	chunks  map[uint64]*chunk
	codes   []codeInfo
	codeOf  map[code]uint32
	samples []uint64 // ids; index 0 unused
	n       int
	bytes   uint64
	perType []Count           // by type id
	far     map[uint32]*Count // ids from denseTypes on
}

// Count is objects and bytes.
type Count struct{ Objects, Bytes uint64 }

func newState() *State {
	return &State{chunks: map[uint64]*chunk{}, codeOf: map[code]uint32{}, samples: make([]uint64, 1)}
}

// Objects is the number of objects in the state.
func (s *State) Objects() int { return s.n }

// Bytes is their sum.
func (s *State) Bytes() uint64 { return s.bytes }

func (s *State) intern(c code, words uint64) uint32 {
	if i, ok := s.codeOf[c]; ok {
		return i
	}
	i := uint32(len(s.codes))
	s.codes = append(s.codes, codeInfo{c, words})
	s.codeOf[c] = i
	return i
}

func (s *State) count(typ uint32, words uint64, up bool) {
	c := s.counter(typ)
	if up {
		s.n++
		s.bytes += words * 8
		c.Objects++
		c.Bytes += words * 8
	} else {
		s.n--
		s.bytes -= words * 8
		c.Objects--
		c.Bytes -= words * 8
	}
}

// denseTypes bounds the ids that are counted in a slice: no honest probe gives larger ones, and a token of four bytes must not take
// gigabytes.
const denseTypes = 1 << 20

func (s *State) counter(typ uint32) *Count {
	if typ >= denseTypes {
		c := s.far[typ]
		if c == nil {
			c = &Count{}
			if s.far == nil {
				s.far = map[uint32]*Count{}
			}
			s.far[typ] = c
		}
		return c
	}
	if n := int(typ) + 1 - len(s.perType); n > 0 {
		s.perType = append(s.perType, make([]Count, n)...)
	}
	return &s.perType[typ]
}

func (s *State) add(o Object) {
	k := o.Addr >> chunkShift
	c := s.chunks[k]
	if c == nil {
		c = &chunk{}
		s.chunks[k] = c
	}
	off := uint16(o.Addr & (chunkWords - 1))
	if n := len(c.off); n > 0 && c.off[n-1] >= off {
		c.dirty = true
	}
	sample := uint32(0)
	if o.Sample != 0 {
		s.samples = append(s.samples, o.Sample)
		sample = uint32(len(s.samples) - 1)
	}
	c.off = append(c.off, off)
	c.code = append(c.code, s.intern(code{o.Type, o.Length}, o.Words))
	c.birth = append(c.birth, o.Birth)
	c.sample = append(c.sample, sample)
	s.count(o.Type, o.Words, true)
}

func (c *chunk) Len() int           { return len(c.off) }
func (c *chunk) Less(i, j int) bool { return c.off[i] < c.off[j] }
func (c *chunk) Swap(i, j int) {
	c.off[i], c.off[j] = c.off[j], c.off[i]
	c.code[i], c.code[j] = c.code[j], c.code[i]
	c.birth[i], c.birth[j] = c.birth[j], c.birth[i]
	c.sample[i], c.sample[j] = c.sample[j], c.sample[i]
}

func (c *chunk) tidy() {
	if c.dirty {
		sort.Stable(c)
		c.dirty = false
	}
}

func (s *State) at(k uint64, c *chunk, i int) Object {
	ci := &s.codes[c.code[i]]
	return Object{Addr: k<<chunkShift | uint64(c.off[i]), Words: ci.words, Length: ci.length, Type: ci.typ, Birth: c.birth[i],
		Sample: s.samples[c.sample[i]]}
}

// keys gives the chunks that overlap [start, end), in order.
func (s *State) keys(start, end uint64) []uint64 {
	var ks []uint64
	lo, hi := start>>chunkShift, (end+chunkWords-1)>>chunkShift
	if hi-lo < uint64(len(s.chunks)) {
		for k := lo; k < hi; k++ {
			if s.chunks[k] != nil {
				ks = append(ks, k)
			}
		}
		return ks
	}
	for k := range s.chunks {
		if k >= lo && k < hi {
			ks = append(ks, k)
		}
	}
	sort.Slice(ks, func(i, j int) bool { return ks[i] < ks[j] })
	return ks
}

// take removes what stands in [start, start+words) and appends it to out, in order of address.
func (s *State) take(out []Object, start, words uint64) []Object {
	end := start + words
	for _, k := range s.keys(start, end) {
		c := s.chunks[k]
		c.tidy()
		base := k << chunkShift
		i := sort.Search(len(c.off), func(i int) bool { return base+uint64(c.off[i]) >= start })
		j := sort.Search(len(c.off), func(i int) bool { return base+uint64(c.off[i]) >= end })
		for n := i; n < j; n++ {
			o := s.at(k, c, n)
			s.count(o.Type, o.Words, false)
			out = append(out, o)
		}
		if i == 0 && j == len(c.off) {
			delete(s.chunks, k)
			continue
		}
		c.off = append(c.off[:i], c.off[j:]...)
		c.code = append(c.code[:i], c.code[j:]...)
		c.birth = append(c.birth[:i], c.birth[j:]...)
		c.sample = append(c.sample[:i], c.sample[j:]...)
	}
	return out
}

// setSample attaches a sample to the object at addr; false if none stands there.
func (s *State) setSample(addr, id uint64) bool {
	c := s.chunks[addr>>chunkShift]
	if c == nil {
		return false
	}
	c.tidy()
	off := uint16(addr & (chunkWords - 1))
	i := sort.Search(len(c.off), func(i int) bool { return c.off[i] >= off })
	if i == len(c.off) || c.off[i] != off {
		return false
	}
	s.samples = append(s.samples, id)
	c.sample[i] = uint32(len(s.samples) - 1)
	return true
}

// Each calls f for each object in order of address until f returns false.
func (s *State) Each(f func(Object) bool) {
	for _, k := range s.keys(0, 1<<46) {
		c := s.chunks[k]
		c.tidy()
		for i := range c.off {
			if !f(s.at(k, c, i)) {
				return
			}
		}
	}
}

// PerType gives objects and bytes by type id, of ids below denseTypes. It stays the state's.
func (s *State) PerType() []Count { return s.perType }
