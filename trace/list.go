package trace

import "encoding/binary"

// Forms of list tokens; part of the format (docs/format/stream.md, "List tokens").
const (
	listEnd  = 0
	listSkip = 1
	listType = 2 // an object of type t is t - 1 + listType
)

// ListKind is what ListTokens.Next has found.
type ListKind uint8

const (
	// ListSegment begins a run of objects at Addr.
	ListSegment ListKind = iota
	// ListObject is an object at Addr.
	ListObject
	// ListSkip is Words words at Addr without an object. Given only if All is set.
	ListSkip
	// ListEnd ends a segment; Addr is where the cursor is. Given only if All is set.
	ListEnd
)

// ListTokens iterates over a blob of list tokens (`births`, `list`). Fields are valid after Next has returned true.
type ListTokens struct {
	Kind   ListKind
	Type   uint32
	Addr   uint64 // words from heap base
	Words  uint64 // size of the object or of the skip
	Length uint64 // elements, or words for types of variable size; 0 for instances

	// All makes Next give skips and ends too.
	All bool

	buf   []byte
	pos   int
	types *TypeTable
	dense []typeEntry
	mask  uint64
	in    bool
	cur   uint64
	why   string
}

// NewListTokens begins to read blob, whose types must be in types. The iterator aliases both; types must not be filled
// meanwhile.
func NewListTokens(blob []byte, types *TypeTable) ListTokens {
	return ListTokens{buf: blob, types: types, dense: types.dense, mask: types.mask}
}

// Err gives what ended the iteration early, a *CorruptError with the offset in the blob, or nil.
func (l *ListTokens) Err() error {
	if l.why == "" {
		return nil
	}
	return &CorruptError{Event: "list tokens", Offset: int64(l.pos), Why: l.why}
}

// Next goes to the next token and says whether there is one.
func (l *ListTokens) Next() bool {
	for {
		if !l.in {
			return l.nextSegment()
		}
		pos, buf := l.pos, l.buf
		var tok uint64
		if pos < len(buf) && buf[pos] < 0x80 {
			tok = uint64(buf[pos])
			pos++
		} else {
			v, n := binary.Uvarint(buf[pos:])
			if n <= 0 {
				return l.fail(varintWhy(n))
			}
			tok, pos = v, pos+n
		}
		if tok < listType {
			if tok == listEnd {
				l.pos, l.in = pos, false
				if l.All {
					l.Kind, l.Addr, l.Words = ListEnd, l.cur, 0
					return true
				}
				continue
			}
			v, n := binary.Uvarint(buf[pos:])
			if n <= 0 {
				return l.fail(varintWhy(n))
			}
			if v > MaxAddr-l.cur {
				return l.fail("skip out of the address space")
			}
			l.pos = pos + n
			l.Addr, l.Words = l.cur, v
			l.cur += v
			if l.All {
				l.Kind = ListSkip
				return true
			}
			continue
		}

		v := tok - listType + 1
		var e typeEntry
		if v < uint64(len(l.dense)) {
			e = l.dense[v]
		}
		if e.form == formUndefined {
			if e = l.types.far[v]; e.form == formUndefined || v > MaxTypeID {
				return l.fail("token of an unknown type")
			}
		}
		var length, words uint64
		if e.form == formInstance {
			words = (uint64(e.base) + l.mask) &^ l.mask >> 3
		} else {
			if pos < len(buf) && buf[pos] < 0x80 {
				length = uint64(buf[pos])
				pos++
			} else {
				u, n := binary.Uvarint(buf[pos:])
				if n <= 0 {
					return l.fail(varintWhy(n))
				}
				length, pos = u, pos+n
			}
			var ok bool
			if words, ok = e.words(length, l.mask); !ok {
				return l.fail("length out of range")
			}
		}
		if words > MaxAddr-l.cur {
			return l.fail("object out of the address space")
		}
		l.Kind, l.Type, l.Addr, l.Words, l.Length = ListObject, uint32(v), l.cur, words, length
		l.cur += words
		l.pos = pos
		return true
	}
}

// Types gives the id from which on Count leaves objects to Next.
func (l *ListTokens) Types() int { return len(l.dense) }

// Count steps over the objects that come next and adds them to objects and words, by type, as long as each begins
// below before, has a short token without a fault and a type that is an index of both. Whatever else comes is Next's.
// It gives how many objects it has counted.
func (l *ListTokens) Count(objects, words []uint64, before uint64) (n int) {
	if !l.in {
		return 0
	}
	pos, cur, buf, dense, mask := l.pos, l.cur, l.buf, l.dense, l.mask
	types := min(len(dense), len(objects), len(words))
	dense, objects, words = dense[:types], objects[:types], words[:types]
	for pos+4 <= len(buf) && cur < before {
		tok, next := uint64(buf[pos]), pos+1
		if tok >= 0x80 {
			b := uint64(buf[next])
			if b >= 0x80 {
				break
			}
			tok, next = tok&0x7f|b<<7, next+1
		}
		v := tok - listType + 1
		if tok < listType || v >= uint64(types) {
			break
		}
		e := dense[v]
		size := (uint64(e.base) + mask) &^ mask >> 3
		if e.form != formInstance {
			length := uint64(buf[next])
			if next++; length >= 0x80 {
				b := uint64(buf[next])
				if b >= 0x80 {
					break
				}
				length, next = length&0x7f|b<<7, next+1
			}
			var ok bool
			if size, ok = e.words(length, mask); !ok {
				break
			}
		}
		if size > MaxAddr-cur {
			break
		}
		objects[v]++
		words[v] += size
		n++
		pos, cur = next, cur+size
	}
	l.pos, l.cur = pos, cur
	return n
}

// Listed is an object of a list: as ListObject.
type Listed struct {
	Addr                uint64
	Words, Length, Type uint32
}

// Objects fills out with the objects that come next, as long as the token of each is short and without a fault.
// Whatever else comes is Next's. It gives how many there are.
func (l *ListTokens) Objects(out []Listed) (n int) {
	if !l.in {
		return 0
	}
	pos, cur, buf, dense, mask := l.pos, l.cur, l.buf, l.dense, l.mask
	for pos+4 <= len(buf) && n < len(out) {
		tok, next := uint64(buf[pos]), pos+1
		if tok >= 0x80 {
			b := uint64(buf[next])
			if b >= 0x80 {
				break
			}
			tok, next = tok&0x7f|b<<7, next+1
		}
		v := tok - listType + 1
		if tok < listType || v >= uint64(len(dense)) {
			break
		}
		e := dense[v]
		words, length := (uint64(e.base)+mask)&^mask>>3, uint64(0)
		if e.form != formInstance {
			length = uint64(buf[next])
			if next++; length >= 0x80 {
				b := uint64(buf[next])
				if b >= 0x80 {
					break
				}
				length, next = length&0x7f|b<<7, next+1
			}
			var ok bool
			if words, ok = e.words(length, mask); !ok {
				break
			}
		}
		if words > MaxAddr-cur {
			break
		}
		out[n] = Listed{cur, uint32(words), uint32(length), uint32(v)}
		n++
		pos, cur = next, cur+words
	}
	l.pos, l.cur = pos, cur
	return n
}

func (l *ListTokens) nextSegment() bool {
	if l.why != "" || l.pos == len(l.buf) {
		return false
	}
	c := cursor{buf: l.buf, pos: l.pos}
	start := l.cur + uint64(c.s())
	switch {
	case !c.ok():
		return l.fail(c.why)
	case start > MaxAddr:
		return l.fail("segment out of the address space")
	}
	l.pos, l.in, l.cur = c.pos, true, start
	l.Kind, l.Addr, l.Words = ListSegment, start, 0
	return true
}

func (l *ListTokens) fail(why string) bool {
	l.why, l.in = why, false
	return false
}

// ListEncoder writes a blob of list tokens. Its errors are sticky: see Err.
type ListEncoder struct {
	types *TypeTable
	buf   []byte
	in    bool
	cur   uint64
	why   string
}

// NewListEncoder begins an empty blob.
func NewListEncoder(types *TypeTable) *ListEncoder { return &ListEncoder{types: types} }

// listGap is the gap, in words, from which a new segment is begun instead of a skip. Any value is legal; a skip is a
// byte shorter.
const listGap = 1 << 16

// Object writes an object at addr and opens, skips or closes segments as needed. Addresses need not ascend.
func (e *ListEncoder) Object(addr uint64, typ uint32, length uint64) {
	n, ok := e.types.Words(uint64(typ), length)
	if !ok || addr > MaxAddr-n {
		e.fail("object of unknown type or length, or out of the address space")
		return
	}
	if e.in && (addr < e.cur || addr-e.cur > listGap) {
		e.End()
	}
	if !e.in {
		e.Begin(addr)
	}
	if addr > e.cur {
		e.Skip(addr - e.cur)
	}
	e.buf = appendU(e.buf, uint64(typ)-1+listType)
	if e.types.HasLength(uint64(typ)) {
		e.buf = appendU(e.buf, length)
	}
	e.cur += n
}

// Begin opens a segment at start.
func (e *ListEncoder) Begin(start uint64) {
	if e.in || start > MaxAddr {
		e.fail("Begin: segment open, or out of the address space")
		return
	}
	e.buf = appendS(e.buf, int64(start-e.cur))
	e.in, e.cur = true, start
}

// Skip leaves out words.
func (e *ListEncoder) Skip(words uint64) {
	if !e.in || words > MaxAddr-e.cur {
		e.fail("Skip: no segment open, or out of the address space")
		return
	}
	e.buf = appendU(append(e.buf, listSkip), words)
	e.cur += words
}

// End closes the segment that is open, if any.
func (e *ListEncoder) End() {
	if e.in {
		e.buf = append(e.buf, listEnd)
		e.in = false
	}
}

// Bytes closes the segment that is open and gives the blob; it stays the encoder's.
func (e *ListEncoder) Bytes() []byte {
	e.End()
	return e.buf
}

// Err says what the caller did wrong first, if anything.
func (e *ListEncoder) Err() error {
	if e.why == "" {
		return nil
	}
	return &CorruptError{Event: "list encoder", Offset: int64(len(e.buf)), Why: e.why}
}

func (e *ListEncoder) fail(why string) {
	if e.why == "" {
		e.why = why
	}
}
