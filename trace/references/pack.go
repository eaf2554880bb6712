package references

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/heapcam/heapcam/trace"
)

// A probe copies slots raw, four bytes each, since it has no time for more. On the disk they are kept by class and
// slot: all references of HashMap$Node.key of a part, then all of HashMap$Node.value, and so on. Objects of one class
// that lie one behind the other often refer to objects that do, too. So what is left of a reference is how far it is
// from what its column predicts, mostly a byte. What compresses the frame (zstd) then finds the repetition.

// mode is how a column predicts its next reference. Each reference takes a byte at least: 0 for null, else
// 1 + zigzag(target - predicted), or for byValue what byValue says.
type mode byte

const (
	byColumn mode = iota // the target before in this column that is not null, at first 0
	byObject             // the object's own word + 1
	bySlot               // the target before in this object that is not null, at first the object's own word + 1
	byValue              // 1 + 2i: value i of this column; 2 + 2 zigzag(target - the new value before): a new one
	modes
)

const (
	// arrayColumn: a slot of so high a number shares the last column of its class.
	arrayColumn = 64
	// mostValues bounds the values that a column of byValue remembers.
	mostValues = 1 << 12
	// What bounds memory, whatever a JVM sends: columns of a part, bytes of its list, objects that wait for their
	// slots, classes of a listing. A probe sends parts of 300 KiB, and the slots right behind their objects.
	mostColumns = 1 << 18
	mostObjects = 1 << 20
	mostWaiting = 1 << 20
	mostClasses = 1 << 18
	// sample is how many slots of a column decide on its mode.
	sample = 1 << 11
)

// A walk follows the slots of a listing through its parts: it knows of each which class and object it belongs to.
type walk struct {
	types   *trace.TypeTable
	classes map[uint64]*walkClass // by type
	waiting []walkObject          // objects whose slots have not all come
	at      int                   // the first of them
	part    int                   // number of the part
	columns int                   // that the part has so far
}

type walkClass struct {
	kind, slots uint64
	part, first int // the part in which it has columns, and the first of them
}

type walkObject struct {
	class      *walkClass
	addr       uint32 // its word + 1
	need, slot uint64 // slots that have not come, and that have
	numbers    int    // that have not come
}

func newWalk(types *trace.TypeTable) *walk {
	return &walk{types: types, classes: map[uint64]*walkClass{}}
}

// enter begins a part.
func (w *walk) enter(p *trace.RefPart) error {
	w.part++
	w.columns = 0
	for _, c := range p.Classes {
		if c.Type != 0 {
			w.classes[c.Type] = &walkClass{kind: c.Kind, slots: c.Slots}
		}
	}
	if w.at == len(w.waiting) {
		w.waiting, w.at = w.waiting[:0], 0
	}
	if len(w.classes) > mostClasses {
		return fmt.Errorf("%w: too many classes", ErrCorrupt)
	}
	size := 0
	for _, blob := range p.Lists {
		if size += len(blob); size > mostObjects {
			return fmt.Errorf("%w: a part of too many objects", ErrCorrupt)
		}
		t := trace.NewListTokens(blob, w.types)
		for t.Next() {
			if t.Kind != trace.ListObject {
				continue
			}
			c := w.classes[uint64(t.Type)]
			if c == nil || t.Addr > MaxWord { // a reader says so
				continue
			}
			o := walkObject{class: c, addr: uint32(t.Addr) + 1, need: c.slots}
			switch c.kind {
			case trace.RefMirror, trace.RefChunk:
				o.numbers = 2
			case trace.RefObjArray:
				o.need = t.Length
			case trace.RefArray:
				o.need = 0
			}
			if o.need > 0 || o.numbers > 0 {
				w.waiting = append(w.waiting, o)
			}
		}
		if err := t.Err(); err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if len(w.waiting) > mostWaiting {
			return fmt.Errorf("%w: too many objects without slots", ErrCorrupt)
		}
	}
	return nil
}

// each calls take with the column of each of the next n slots, with the object's own word + 1 and the target before in
// this object. take gives the slot.
func (w *walk) each(n int, take func(column int, addr, before uint32) (uint32, error)) error {
	for ; w.at < len(w.waiting); w.at++ {
		o := &w.waiting[w.at]
		c := o.class
		if n > 0 && c.part != w.part {
			c.part, c.first = w.part, w.columns
			w.columns += 2 + int(min(max(c.slots, 1), arrayColumn))
			if c.kind == trace.RefMirror || c.kind == trace.RefChunk {
				w.columns += arrayColumn
			}
			if w.columns > mostColumns {
				return fmt.Errorf("%w: a part of too many classes", ErrCorrupt)
			}
		}
		before := o.addr
		for ; o.numbers > 0 && n > 0; n-- {
			v, err := take(c.first+2-o.numbers, 0, 0)
			if err != nil {
				return err
			}
			if o.numbers--; o.numbers == 0 {
				o.need += uint64(v)
			}
		}
		for ; o.numbers == 0 && o.need > 0 && n > 0; n-- {
			v, err := take(c.column(o.slot), o.addr, before)
			if err != nil {
				return err
			}
			if v != 0 {
				before = v
			}
			o.slot++
			o.need--
		}
		if o.numbers > 0 || o.need > 0 {
			break
		}
	}
	if n > 0 {
		return fmt.Errorf("%w: slots of no object", ErrCorrupt)
	}
	return nil
}

func (c *walkClass) column(slot uint64) int {
	switch c.kind {
	case trace.RefObjArray:
		slot = 0
	case trace.RefMirror, trace.RefChunk:
		slot = min(slot, min(max(c.slots, 1), arrayColumn)+arrayColumn-1)
	default:
		slot = min(slot, arrayColumn-1)
	}
	return c.first + 2 + int(slot)
}

// raw goes past slots as a probe sends them.
func (w *walk) raw(slots [][]byte) error {
	n := 0
	for _, s := range slots {
		n += len(s) / 4
	}
	r := rawSlots{blobs: slots}
	return w.each(n, func(int, uint32, uint32) (uint32, error) { return r.next(), nil })
}

// rawSlots reads slots of blobs one after the other. There must be one more.
type rawSlots struct {
	blobs [][]byte
	at    int
}

func (r *rawSlots) next() uint32 {
	for r.at == len(r.blobs[0])/4 {
		r.blobs, r.at = r.blobs[1:], 0
	}
	r.at++
	return trace.RefSlot(r.blobs[0], r.at-1)
}

// Packer packs the slots of the parts of one listing after the other, in their order. It keeps what it allocated.
type Packer struct {
	walk    *walk
	listing uint64
	next    uint64
	columns []column
	out     []byte
	try     []byte
	values  values
}

// column is what a part has of one.
type column struct{ values, addr, before []uint32 }

// Pack gives the packed form of a part's slots, for RefPart.Columns. It is valid until the next call. ok: there is one;
// parts without slots have none, nor has what does not fit what came before it.
func (k *Packer) Pack(p *trace.RefPart, types *trace.TypeTable) (packed []byte, ok bool) {
	switch {
	case p.N == 1:
		k.walk, k.listing, k.next = newWalk(types), p.Listing, 1
	case k.walk == nil || p.Listing != k.listing || p.N != k.next:
		k.walk = nil
		return nil, false
	}
	k.next++
	k.walk.types = types
	n := 0
	for _, s := range p.Slots {
		n += len(s) / 4
	}
	slots := rawSlots{blobs: p.Slots}
	for i := range k.columns {
		c := &k.columns[i]
		c.values, c.addr, c.before = c.values[:0], c.addr[:0], c.before[:0]
	}
	err := k.walk.enter(p)
	if err == nil {
		err = k.walk.each(n, func(i int, addr, before uint32) (uint32, error) {
			v := slots.next()
			if more := k.walk.columns - len(k.columns); more > 0 {
				k.columns = append(k.columns, make([]column, more)...)
			}
			c := &k.columns[i]
			c.values, c.addr, c.before = append(c.values, v), append(c.addr, addr), append(c.before, before)
			return v, nil
		})
	}
	if err != nil {
		k.walk = nil
		return nil, false
	}
	if n == 0 {
		return nil, false
	}
	return k.pack(n), true
}

// pack writes: number of slots, number of columns; of each column its size; then the columns. One that is not empty
// begins with its mode.
func (k *Packer) pack(n int) []byte {
	all := k.columns[:k.walk.columns]
	head := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(n)), uint64(len(all)))
	k.out = k.out[:0]
	for i := range all {
		was := len(k.out)
		if len(all[i].values) > 0 {
			k.column(&all[i])
		}
		head = binary.AppendUvarint(head, uint64(len(k.out)-was))
	}
	return append(head, k.out...)
}

// column appends a column in the mode that needs the fewest bits, as far as a part of the column shows.
func (k *Packer) column(c *column) {
	from := max(0, len(c.values)/2-sample/2)
	to := min(len(c.values), from+sample)
	some := column{c.values[from:to], c.addr[from:to], c.before[from:to]}
	best, least := mode(0), math.Inf(1)
	for m := range modes {
		k.try = k.encode(k.try[:0], &some, m)
		if bits := entropy(k.try); bits < least {
			best, least = m, bits
		}
	}
	k.out = k.encode(append(k.out, byte(best)), c, best)
}

// values numbers the first values of a column: a hash table that is half full at most.
type values struct {
	table [2 * mostValues]struct{ value, number, round uint32 }
	round uint32 // what the table has of earlier rounds is forgotten
	n     uint32
}

func (x *values) forget() {
	x.n = 0
	if x.round++; x.round == 0 {
		*x = values{round: 1}
	}
}

// number gives the number that v has; false: it has none yet, and may have got one now.
func (x *values) number(v uint32) (number uint32, ok bool) {
	for i := v * 2654435761 >> 19; ; i++ {
		e := &x.table[i&(2*mostValues-1)]
		switch {
		case e.round != x.round:
			if x.n < mostValues {
				e.value, e.number, e.round = v, x.n, x.round
				x.n++
			}
			return 0, false
		case e.value == v:
			return e.number, true
		}
	}
}

func zigzag(d int64) uint64 { return uint64(d<<1 ^ d>>63) }

func (k *Packer) encode(b []byte, c *column, m mode) []byte {
	last := uint32(0)
	if m == byValue {
		k.values.forget()
	}
	for i, v := range c.values {
		if v == 0 {
			b = append(b, 0)
			continue
		}
		from := last
		switch m {
		case byObject:
			from = c.addr[i]
		case bySlot:
			from = c.before[i]
		case byValue:
			if at, ok := k.values.number(v); ok {
				b = binary.AppendUvarint(b, 1+2*uint64(at))
				continue
			}
			b = binary.AppendUvarint(b, 2+2*zigzag(int64(v)-int64(last)))
			last = v
			continue
		}
		b = binary.AppendUvarint(b, 1+zigzag(int64(v)-int64(from)))
		last = v
	}
	return b
}

// entropy gives how many bits b takes if its bytes are drawn independently.
func entropy(b []byte) (bits float64) {
	var counts [256]int
	for _, c := range b {
		counts[c]++
	}
	for _, n := range counts {
		if n > 0 {
			bits -= float64(n) * math.Log2(float64(n)/float64(len(b)))
		}
	}
	return bits + float64(len(b))/64 // a long row of equal bytes is not free
}

// Unpacker is the inverse of Packer: it gives the slots of the parts of one listing, in their order.
type Unpacker struct {
	walk    *walk
	err     error // the walk has ended: what follows can be read only as it came
	columns []unpacked
	slots   []byte
}

// NewUnpacker begins a listing, of objects whose types are in types, which may go on to fill.
func NewUnpacker(types *trace.TypeTable) *Unpacker { return &Unpacker{walk: newWalk(types)} }

type unpacked struct {
	r      reader
	mode   mode
	last   uint32
	values []uint32
}

// Unpack gives the slots of a part as a probe sends them, also of one that has them so. They are valid until the next
// call. There are at most as many as the part has bytes. Its error wraps ErrCorrupt.
func (k *Unpacker) Unpack(p *trace.RefPart) ([][]byte, error) {
	if k.err == nil {
		k.err = k.walk.enter(p)
	}
	if p.Columns == nil { // what exceeds a bound of the walk was never packed
		if k.err == nil {
			k.err = k.walk.raw(p.Slots)
		}
		return p.Slots, nil
	}
	if k.err != nil {
		return nil, k.err
	}
	r := reader{b: p.Columns}
	n := r.count(uint64(len(p.Columns)))
	k.slots = k.slots[:0]
	k.columns = k.columns[:0]
	sizes := make([]uint64, r.count(mostColumns))
	for i := range sizes {
		sizes[i] = r.u(uint64(len(p.Columns)))
	}
	for _, size := range sizes {
		c := unpacked{r: reader{b: r.take(size)}}
		if size > 0 && r.err == nil {
			c.mode = mode(c.r.byte(byte(modes)))
		}
		if r.err != nil || c.r.err != nil {
			return nil, ErrCorrupt
		}
		k.columns = append(k.columns, c)
	}
	err := k.walk.each(n, func(i int, addr, before uint32) (uint32, error) {
		if i >= len(k.columns) {
			return 0, fmt.Errorf("%w: a slot of no column", ErrCorrupt)
		}
		c := &k.columns[i]
		v := c.next(addr, before)
		if c.r.err != nil {
			return 0, c.r.err
		}
		k.slots = binary.LittleEndian.AppendUint32(k.slots, v)
		return v, nil
	})
	left := len(r.b)
	for i := range k.columns {
		left += len(k.columns[i].r.b)
	}
	if err == nil && (left > 0 || k.walk.columns != len(k.columns)) {
		err = fmt.Errorf("%w: %d bytes too many, or columns of no class", ErrCorrupt, left)
	}
	return [][]byte{k.slots}, err
}

func (c *unpacked) next(addr, before uint32) uint32 {
	var v uint64
	if b := c.r.b; len(b) > 0 && b[0] < 0x80 { // nearly always
		v, c.r.b = uint64(b[0]), b[1:]
	} else {
		v = c.r.u(1 << 36)
	}
	if v == 0 {
		return 0
	}
	from := c.last
	switch c.mode {
	case byObject:
		from = addr
	case bySlot:
		from = before
	case byValue:
		if v&1 == 1 {
			if i := (v - 1) / 2; i < uint64(len(c.values)) {
				return c.values[i]
			}
			c.r.fail("value")
			return 0
		}
		v = (v-2)/2 + 1
	}
	z := v - 1
	t := int64(from) + (int64(z>>1) ^ -int64(z&1))
	if t <= 0 || t > 1<<32-1 {
		c.r.fail("slot")
		return 0
	}
	c.last = uint32(t)
	if c.mode == byValue && len(c.values) < mostValues {
		c.values = append(c.values, uint32(t))
	}
	return uint32(t)
}
