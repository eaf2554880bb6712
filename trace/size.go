package trace

import "math/bits"

// TypeTable knows how large objects are. It is filled from the `type` events of a session and read by the token
// iterators and encoders. It is not safe for use while it is being filled; afterwards any number of goroutines may read
// it.
type TypeTable struct {
	mask  uint64 // alignment in bytes, minus 1
	dense []typeEntry
	far   map[uint64]typeEntry // ids that would make dense mostly empty: no honest probe gives them
	n     int
}

// typeEntry is 8 bytes so that the table of a large program stays in the cache.
type typeEntry struct {
	base uint32 // bytes: instance, or header of an array
	log2 uint8
	form typeForm
}

type typeForm uint8

const (
	formUndefined typeForm = iota
	formInstance
	formArray
	formVariable
)

// denseSlack is how far beyond the number of types known an id may lie and still be kept in the slice.
const denseSlack = 1 << 16

// NewTypeTable makes an empty table for a JVM whose objects are aligned to so many bytes (8 if not a power of two from
// 8 to MaxAlign; see SetAlign).
func NewTypeTable(align uint64) *TypeTable {
	t := &TypeTable{mask: 7}
	t.SetAlign(align)
	return t
}

// SetAlign sets the alignment of objects in bytes, as the `jvm` event gives it. It reports whether align is a possible
// one and leaves the table as it was if not.
func (t *TypeTable) SetAlign(align uint64) bool {
	if align < 8 || align > MaxAlign || bits.OnesCount64(align) != 1 {
		return false
	}
	t.mask = align - 1
	return true
}

// Define adds a type or replaces it. Its error is a *CorruptError without place: an id, size or element size beyond the
// limits. DecodeDefs has checked all of it already for what comes from a block.
func (t *TypeTable) Define(ty Type) error {
	if why := ty.check(); why != "" {
		return &CorruptError{Kind: KindDefs, Event: "type", Why: why}
	}
	e := typeEntry{base: uint32(ty.Size), log2: uint8(ty.Log2), form: formInstance}
	switch {
	case ty.Flags&TypeVariable != 0:
		e.form = formVariable
	case ty.Flags&TypeArray != 0:
		e.form = formArray
	default:
		e.log2 = 0
	}
	if !t.Known(ty.ID) {
		t.n++
	}
	if ty.ID < uint64(len(t.dense)) {
		t.dense[ty.ID] = e
		return nil
	}
	if ty.ID < uint64(4*t.n+denseSlack) {
		for uint64(len(t.dense)) <= ty.ID {
			t.dense = append(t.dense, typeEntry{})
		}
		t.dense[ty.ID] = e
		return nil
	}
	if t.far == nil {
		t.far = map[uint64]typeEntry{}
	}
	t.far[ty.ID] = e
	return nil
}

// DefineAll adds types, see Define.
func (t *TypeTable) DefineAll(types []Type) error {
	for _, ty := range types {
		if err := t.Define(ty); err != nil {
			return err
		}
	}
	return nil
}

// Len gives the number of types known.
func (t *TypeTable) Len() int { return t.n }

// Known says whether a type of that id has been defined.
func (t *TypeTable) Known(id uint64) bool { return t.entry(id).form != formUndefined }

// HasLength says whether a length follows the token of objects of that type: elements for arrays, words for variable
// size.
func (t *TypeTable) HasLength(id uint64) bool { return t.entry(id).form >= formArray }

// Words gives the size in words of an object: of length elements if it is an array, of length words if its size is
// variable; length is ignored for instances. It is false for an unknown type and for a length beyond the limits.
func (t *TypeTable) Words(id, length uint64) (uint64, bool) {
	return t.entry(id).words(length, t.mask)
}

func (t *TypeTable) entry(id uint64) typeEntry {
	if id < uint64(len(t.dense)) {
		if e := t.dense[id]; e.form != formUndefined {
			return e
		}
	}
	return t.far[id]
}

func (e typeEntry) words(length, mask uint64) (uint64, bool) {
	switch e.form {
	case formInstance:
		return (uint64(e.base) + mask) &^ mask >> 3, true
	case formArray:
		if length > MaxLength {
			return 0, false
		}
		return (uint64(e.base) + length<<(e.log2&7) + mask) &^ mask >> 3, true
	case formVariable:
		return length, length > 0 && length <= MaxObject
	}
	return 0, false
}

// check says what is wrong with a type, "" if nothing.
func (ty *Type) check() string {
	switch {
	case ty.ID == 0 || ty.ID > MaxTypeID:
		return "type id out of range"
	case ty.Size > MaxInstance:
		return "size out of range"
	case ty.Size == 0 && ty.Flags&TypeVariable == 0:
		return "size is zero"
	case ty.Log2 > MaxLog2:
		return "element size out of range"
	}
	return ""
}
