package references

import (
	"encoding/binary"
	"hash/crc32"
)

// The stored form of a listing is a sequence of payloads of REFS blocks, its *parts* (docs/format/references.md): the
// head with shapes and roots, then the objects in runs. Each part ends with a CRC-32C of what is before it, so a part
// can be checked alone.
const (
	partHead    = 1
	partObjects = 2

	// PartSlots and PartObjects are how many slots and objects a part has at most, unless one object has more slots.
	PartSlots   = 1 << 22
	PartObjects = 1 << 20

	// maxColumns bounds the columns that a group of shapes has for the slots of its fields.
	maxColumns = 64
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encode gives the stored form of a listing, part by part. Its error is that of Check.
func Encode(l *Listing) ([][]byte, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	parts := [][]byte{appendHead(nil, l)}
	e := encoder{l: l, layout: newLayout(l.Shapes)}
	for from := 0; from < len(l.Addr); {
		to := from + 1
		for to < len(l.Addr) && to-from < PartObjects && l.First[to+1]-l.First[from] <= PartSlots {
			to++
		}
		parts = append(parts, e.part(from, to))
		from = to
	}
	return parts, nil
}

var (
	u = binary.AppendUvarint
	s = binary.AppendVarint
)

func str(b []byte, t string) []byte { return append(u(b, uint64(len(t))), t...) }

func seal(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// appendHead appends the head of a listing.
func appendHead(b []byte, l *Listing) []byte {
	b = append(b, partHead)
	for _, v := range []uint64{l.Collection, l.Base, uint64(len(l.Addr)), uint64(len(l.Slots)), uint64(len(l.Shapes)),
		uint64(len(l.Roots)), uint64(len(l.Missing))} {
		b = u(b, v)
	}
	for i := range l.Shapes {
		x := &l.Shapes[i]
		b = str(str(str(append(u(b, uint64(x.Type)), byte(x.Kind)), x.Name), x.Of), x.Rest)
		b = u(b, uint64(len(x.Fields)))
		for _, f := range x.Fields {
			b = append(str(str(str(b, f.Name), f.Class), f.Declared), byte(f.Strength))
		}
	}
	prev := uint32(0)
	for i := range l.Roots {
		r := &l.Roots[i]
		b = append(s(b, int64(r.Target)-int64(prev)), byte(r.Kind))
		b = str(u(str(str(str(b, r.Thread), r.Class), r.Method), uint64(r.Line)), r.Field)
		prev = r.Target
	}
	for _, m := range l.Missing {
		b = str(b, m)
	}
	return seal(b)
}

// layout says which columns the slots of each shape are in. All class mirrors share their columns, because each has a
// shape of its own.
type layout struct {
	shapes []Shape
	first  []uint32 // by shape: its first column
	fields []uint32 // by shape: how many columns its fields have; the next one is that of the rest
	n      uint32   // columns in all
}

// Columns of a group, before those of its fields.
const (
	columnSize = iota
	columnCount
	columnFields
)

func newLayout(shapes []Shape) *layout {
	x := &layout{shapes: shapes, first: make([]uint32, len(shapes)), fields: make([]uint32, len(shapes))}
	mirrors := uint32(0) // the columns of the fields of mirrors
	for i := range shapes {
		x.fields[i] = min(uint32(len(shapes[i].Fields)), maxColumns)
		if shapes[i].Kind == Mirror {
			mirrors = max(mirrors, x.fields[i])
		}
	}
	x.n = columnFields + mirrors + 1
	for i := range shapes {
		if shapes[i].Kind == Mirror {
			x.fields[i] = mirrors
			continue
		}
		x.first[i] = x.n
		x.n += columnFields + x.fields[i] + 1
	}
	return x
}

// column gives the column of slot k of an object of a shape.
func (x *layout) column(shape uint32, k int) uint32 {
	return x.first[shape] + columnFields + min(uint32(k), x.fields[shape])
}

// counted says whether objects of a shape differ in how many slots they have.
func (x *layout) counted(shape uint32) bool {
	return x.shapes[shape].Rest != "" || x.shapes[shape].Kind == Mirror
}

// encoder makes the parts with objects.
type encoder struct {
	l      *Listing
	layout *layout
	column [][]byte
	last   []uint32 // by column: the value before
}

// part gives the part with objects from to to.
func (e *encoder) part(from, to int) []byte {
	l, x := e.l, e.layout
	if e.column == nil {
		e.column, e.last = make([][]byte, x.n), make([]uint32, x.n)
	}
	for c := range e.column {
		e.column[c], e.last[c] = e.column[c][:0], 0
	}
	gaps, codes := make([]byte, 0, to-from), make([]byte, 0, to-from)
	end := uint32(0)
	for i := from; i < to; i++ {
		code := l.Code[i]
		gaps, codes = u(gaps, uint64(l.Addr[i]-end)), u(codes, uint64(code))
		end = l.Addr[i] + l.Words[i]
		e.delta(x.first[code]+columnSize, l.Words[i])
		slots := l.Of(i)
		if x.counted(code) {
			e.delta(x.first[code]+columnCount, uint32(len(slots)))
		}
		c, rest := x.first[code]+columnFields, x.column(code, maxColumns)
		for _, t := range slots {
			e.slot(c, t)
			c = min(c+1, rest)
		}
	}
	b := append(make([]byte, 0, 3*(to-from)), partObjects)
	b = u(u(u(b, l.Collection), uint64(from)), uint64(to-from))
	b = u(u(b, uint64(len(gaps))), uint64(len(codes)))
	used := 0
	for _, c := range e.column {
		used += min(len(c), 1)
	}
	b = u(b, uint64(used))
	prev := 0
	for c, col := range e.column {
		if len(col) > 0 {
			b = u(u(b, uint64(c-prev)), uint64(len(col)))
			prev = c
		}
	}
	b = append(append(b, gaps...), codes...)
	for _, col := range e.column {
		b = append(b, col...)
	}
	return seal(b)
}

// delta appends a number to a column, as the difference to the one before.
func (e *encoder) delta(c, v uint32) {
	e.column[c] = s(e.column[c], int64(v)-int64(e.last[c]))
	e.last[c] = v
}

// slot appends a slot to a column: 0 for null, else the difference to the target before.
func (e *encoder) slot(c, t uint32) {
	if t == 0 {
		e.column[c] = append(e.column[c], 0)
		return
	}
	d := int64(t) - int64(e.last[c])
	e.column[c] = u(e.column[c], uint64(d<<1^d>>63)+1)
	e.last[c] = t
}
