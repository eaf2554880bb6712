package state

import (
	"math/bits"
	"slices"
	"sort"
)

// ChunkWords is the stretch of address space that one chunk's columns cover: 256 KiB, so that an offset fits 16 bits.
const (
	ChunkShift = 15
	ChunkWords = 1 << ChunkShift
)

// AtLeastMark marks a birth that is the newest one possible: the object may be older.
const AtLeastMark = 1 << 31

// A birth may also say in which kind of space its object stood when MarkSpaces was called: in the three bits below, so
// births are below MaxMarked.
const (
	SpaceShift = 28
	SpaceMarks = 7 << SpaceShift
	MaxMarked  = 1 << SpaceShift
)

// Chunk holds the objects of a stretch as columns of equal length, sorted by offset unless dirty. 6 to 10 bytes an
// object.
type Chunk struct {
	Off     []uint16
	Code    []uint32
	Birth   []uint32 // with the mark AtLeastMark; nil: all are same
	Same    uint32
	room    []uint32 // memory for Birth, empty
	dirty   bool
	loose   bool       // samples are not sorted
	Samples []SampleAt // sorted by offset unless loose; the last of one offset counts
	owner   uint32     // the state that may write to it (State.id); others that hold it only read
	lent    bool       // off, code and birth are another chunk's too
	stamp   uint32     // State.stamp when it was last written to
}

type SampleAt struct {
	Off uint16
	ID  uint64
}

// Spread makes a column of births.
func (c *Chunk) Spread() {
	if c.Birth != nil {
		return
	}
	if c.Birth, c.room = c.room, nil; c.Birth == nil || cap(c.Birth) < len(c.Off) {
		c.Birth = make([]uint32, len(c.Off), cap(c.Off))
	}
	c.Birth = c.Birth[:len(c.Off)]
	for i := range c.Birth {
		c.Birth[i] = c.Same
	}
}

func (c *Chunk) Born(i int) uint32 {
	if c.Birth == nil {
		return c.Same
	}
	return c.Birth[i]
}

// mark puts a sample on the offset.
func (c *Chunk) mark(off uint16, id uint64) {
	if n := len(c.Samples); n > 0 && c.Samples[n-1].Off > off {
		c.loose = true
	}
	c.Samples = append(c.Samples, SampleAt{off, id})
}

// Level drops the column of births if all are the same.
func (c *Chunk) Level() {
	if len(c.Birth) == 0 {
		return
	}
	for _, b := range c.Birth {
		if b != c.Birth[0] {
			return
		}
	}
	c.Same, c.Birth = c.Birth[0], nil
}

// SetBirth says when the object that is at index i of a chunk was allocated.
func (c *Chunk) SetBirth(i int, birth uint32) {
	if c.Birth == nil && c.Same == birth {
		return
	}
	c.Spread()
	c.Birth[i] = birth
}

// SampleOf gives the sample at the offset, 0 if there is none. The chunk must be tidy.
func (c *Chunk) SampleOf(off uint16) uint64 {
	if len(c.Samples) == 0 {
		return 0
	}
	i := sort.Search(len(c.Samples), func(i int) bool { return c.Samples[i].Off > off })
	if i > 0 && c.Samples[i-1].Off == off {
		return c.Samples[i-1].ID
	}
	return 0
}

// Tidy sorts a chunk and its samples.
func (s *State) Tidy(c *Chunk) {
	if c.loose {
		c.loose = false
		slices.SortStableFunc(c.Samples, func(a, b SampleAt) int { return int(a.Off) - int(b.Off) })
	}
	if c.dirty {
		s.order(c)
	}
}

// order sorts a chunk's columns. Of two objects at one address, which only a corrupt stream has, the newer stays.
func (s *State) order(c *Chunk) {
	c.dirty = false
	// Counting sort: the offsets as a bitmap, and where each stood.
	var there [ChunkWords / 64]uint64
	var at [ChunkWords]int32
	for i, o := range c.Off {
		bit := uint64(1) << (o % 64)
		if there[o/64]&bit != 0 {
			s.Codes.Count[c.Code[at[o]]]--
			s.n--
		}
		there[o/64] |= bit
		at[o] = int32(i)
	}
	code := slices.Clone(c.Code)
	var birth []uint32
	if c.Birth != nil {
		birth = slices.Clone(c.Birth)
	}
	n := 0
	for i, w := range there {
		for ; w != 0; w &= w - 1 {
			o := i*64 + bits.TrailingZeros64(w)
			c.Off[n], c.Code[n] = uint16(o), code[at[o]]
			if birth != nil {
				c.Birth[n] = birth[at[o]]
			}
			n++
		}
	}
	c.Off, c.Code = c.Off[:n], c.Code[:n]
	if birth != nil {
		c.Birth = c.Birth[:n]
	}
}
