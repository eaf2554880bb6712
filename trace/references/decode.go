package references

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/heapcam/heapcam/trace"
)

// ErrCorrupt says that a part is not what Encode makes. ErrIncomplete says that parts are missing.
var (
	ErrCorrupt    = errors.New("corrupt reference listing")
	ErrIncomplete = errors.New("incomplete reference listing")
)

// Decode is the inverse of Encode. What it takes is at most a small multiple of the parts' size. Errors: ErrCorrupt,
// ErrIncomplete, and those of Check.
func Decode(parts [][]byte) (*Listing, error) {
	if len(parts) == 0 {
		return nil, ErrIncomplete
	}
	c := &reader{}
	l, objects, slots := c.head(parts[0])
	if c.err != nil {
		return nil, c.err
	}
	size := uint64(0)
	for _, p := range parts[1:] {
		size += uint64(len(p))
	}
	if objects > size || slots > size { // each takes a byte at least
		return nil, fmt.Errorf("%w: %d objects and %d slots in %d bytes", ErrIncomplete, objects, slots, size)
	}
	l.Addr, l.Code, l.Words = make([]uint32, 0, objects), make([]uint32, 0, objects), make([]uint32, 0, objects)
	l.First, l.Slots = append(make([]uint64, 0, objects+1), 0), make([]uint32, 0, slots)
	x := newLayout(l.Shapes)
	d := decoder{l: l, layout: x, column: make([]reader, x.n), last: make([]uint32, x.n)}
	for _, p := range parts[1:] {
		if err := d.part(p); err != nil {
			return nil, err
		}
	}
	if uint64(len(l.Addr)) != objects || uint64(len(l.Slots)) != slots {
		return nil, fmt.Errorf("%w: %d of %d objects, %d of %d slots", ErrIncomplete, len(l.Addr), objects,
			len(l.Slots), slots)
	}
	return l, l.Check()
}

// Collection gives the collection that a part belongs to, and whether the part is the head of a listing.
func Collection(part []byte) (gc uint64, head bool, err error) {
	if len(part) == 0 || part[0] != partHead && part[0] != partObjects {
		return 0, false, fmt.Errorf("%w: no part", ErrCorrupt)
	}
	gc, n := binary.Uvarint(part[1:])
	if n <= 0 {
		return 0, false, fmt.Errorf("%w: no collection", ErrCorrupt)
	}
	return gc, part[0] == partHead, nil
}

// reader reads numbers and strings; its first error stays.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(why string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrCorrupt, why)
	}
	r.b = nil
}

// open begins a part of a kind, and checks its checksum.
func (r *reader) open(b []byte, kind byte) {
	n := len(b) - 4
	if n < 1 || crc32.Checksum(b[:n], castagnoli) != binary.LittleEndian.Uint32(b[n:]) {
		r.fail("wrong checksum")
		return
	}
	if b[0] != kind {
		r.fail("a part of another kind")
		return
	}
	r.b = b[1:n]
}

// u reads a number of at most limit.
func (r *reader) u(limit uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > limit {
		r.fail("number")
		return 0
	}
	r.b = r.b[n:]
	return v
}

// delta reads a number that is stored as the difference to last.
func (r *reader) delta(last uint32) uint32 {
	d, n := binary.Varint(r.b)
	v := int64(last) + d
	if n <= 0 || d > 1<<33 || d < -1<<33 || v < 0 || v > 1<<32-1 {
		r.fail("difference")
		return 0
	}
	r.b = r.b[n:]
	return uint32(v)
}

// slot reads a slot; last is the target before.
func (r *reader) slot(last uint32) uint32 {
	if len(r.b) > 0 && r.b[0] == 0 {
		r.b = r.b[1:]
		return 0
	}
	z := r.u(1<<34) - 1
	v := int64(last) + (int64(z>>1) ^ -int64(z&1))
	if r.err != nil || v <= 0 || v > 1<<32-1 {
		r.fail("slot")
		return 0
	}
	return uint32(v)
}

func (r *reader) byte(limit byte) byte {
	if len(r.b) == 0 || r.b[0] >= limit {
		r.fail("enumeration")
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) str() string {
	n := r.u(trace.MaxStr)
	if n > uint64(len(r.b)) {
		r.fail("string")
		return ""
	}
	t := trace.CleanString(r.b[:n])
	r.b = r.b[n:]
	return t
}

// take takes n bytes.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail("column")
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// count reads how many things follow, each of which takes a byte at least.
func (r *reader) count(limit uint64) int {
	n := r.u(limit)
	if n > uint64(len(r.b)) {
		r.fail("count")
		return 0
	}
	return int(n)
}

// head reads the head. The counts of objects and slots are what it says.
func (r *reader) head(b []byte) (l *Listing, objects, slots uint64) {
	r.open(b, partHead)
	l = &Listing{Collection: r.u(trace.MaxCount), Base: r.u(1<<64 - 1)}
	objects, slots = r.u(MaxWord), r.u(1<<40)
	shapes, roots, missing := r.count(MaxShapes), r.count(MaxRoots), r.count(1<<10)
	for k := 0; k < shapes && r.err == nil; k++ {
		x := Shape{Type: uint32(r.u(trace.MaxTypeID)), Kind: Kind(r.byte(byte(kinds))), Name: r.str(), Of: r.str(),
			Rest: r.str()}
		for n := r.count(MaxFields); n > 0 && r.err == nil; n-- {
			x.Fields = append(x.Fields, Field{r.str(), r.str(), r.str(), Strength(r.byte(byte(strengths)))})
		}
		l.Shapes = append(l.Shapes, x)
	}
	prev := uint32(0)
	for k := 0; k < roots && r.err == nil; k++ {
		x := Root{Target: r.delta(prev), Kind: RootKind(r.byte(byte(rootKinds))), Thread: r.str(), Class: r.str(),
			Method: r.str(), Line: int(r.u(trace.MaxLine)), Field: r.str()}
		prev = x.Target
		l.Roots = append(l.Roots, x)
	}
	for ; missing > 0 && r.err == nil; missing-- {
		l.Missing = append(l.Missing, r.str())
	}
	if len(r.b) > 0 {
		r.fail("more behind the head")
	}
	return l, objects, slots
}

// decoder appends objects to a listing.
type decoder struct {
	l      *Listing
	layout *layout
	column []reader
	last   []uint32
}

// part appends the objects of a part.
func (d *decoder) part(b []byte) error {
	l := d.l
	var r reader
	r.open(b, partObjects)
	gc, first := r.u(trace.MaxCount), r.u(MaxWord)
	if r.err == nil && (gc != l.Collection || first != uint64(len(l.Addr))) {
		return fmt.Errorf("%w: objects from %d of collection %d follow %d of collection %d", ErrIncomplete, first, gc,
			len(l.Addr), l.Collection)
	}
	n, gapBytes, codeBytes := r.count(MaxWord), r.u(1<<32), r.u(1<<32)
	clear(d.column)
	clear(d.last)
	used := r.count(uint64(d.layout.n))
	sizes := make([][2]uint64, used)
	at := uint64(0)
	for k := range sizes {
		at += r.u(uint64(d.layout.n))
		sizes[k] = [2]uint64{at, r.u(1 << 32)}
		if at >= uint64(d.layout.n) {
			r.fail("column out of range")
		}
	}
	gaps, codes := reader{b: r.take(gapBytes)}, reader{b: r.take(codeBytes)}
	for _, c := range sizes {
		if b := r.take(c[1]); r.err == nil {
			d.column[c[0]].b = b
		}
	}
	if r.err != nil {
		return r.err
	}
	end := uint32(0)
	for ; n > 0; n-- {
		gap, code := gaps.u(MaxWord), uint32(codes.u(uint64(len(l.Shapes))))
		if gaps.err != nil || codes.err != nil || int(code) >= len(l.Shapes) || uint64(end)+gap > MaxWord {
			return errors.Join(ErrCorrupt, gaps.err, codes.err)
		}
		addr := end + uint32(gap)
		words, err := d.object(code)
		if err != nil {
			return err
		}
		if uint64(addr)+uint64(words) > MaxWord {
			return fmt.Errorf("%w: object out of range", ErrCorrupt)
		}
		end = addr + words
		l.Addr, l.Code, l.Words = append(l.Addr, addr), append(l.Code, code), append(l.Words, words)
		l.First = append(l.First, uint64(len(l.Slots)))
	}
	left := len(r.b) + len(gaps.b) + len(codes.b)
	for c := range d.column {
		left += len(d.column[c].b)
	}
	if left > 0 {
		return fmt.Errorf("%w: %d bytes too many", ErrCorrupt, left)
	}
	return nil
}

// object reads the size and the slots of an object.
func (d *decoder) object(code uint32) (words uint32, err error) {
	x, l := d.layout, d.l
	first := x.first[code]
	number := func(c uint32) uint32 {
		d.last[c] = d.column[c].delta(d.last[c])
		return d.last[c]
	}
	words = number(first + columnSize)
	if err = d.column[first+columnSize].err; err != nil {
		return 0, err
	}
	slots := uint32(len(x.shapes[code].Fields))
	if x.counted(code) {
		slots = number(first + columnCount)
		if err = d.column[first+columnCount].err; err != nil {
			return 0, err
		}
	}
	c, rest := first+columnFields, x.column(code, maxColumns)
	for ; slots > 0; slots-- {
		t := d.column[c].slot(d.last[c])
		if err = d.column[c].err; err != nil {
			return 0, err
		}
		if t != 0 {
			d.last[c] = t
		}
		l.Slots = append(l.Slots, t)
		c = min(c+1, rest)
	}
	return words, nil
}
