package trace

import "encoding/binary"

// Forms of walk tokens; part of the format (docs/format/stream.md, "Walk tokens").
const (
	walkBits  = 3
	walkDead  = 0
	walkMove  = 1
	walkLane0 = 2 // 2–5
	walkSkip  = 6
	walkEnd   = 7

	// Lanes is the number of places where survivors may be laid down without saying where.
	Lanes = 4
)

// WalkKind is what WalkTokens.Next has found.
type WalkKind uint8

const (
	// WalkSegment begins a range: [Addr, Addr+Words). All that the state knows in it either is moved by a token that
	// follows or is dead.
	WalkSegment WalkKind = iota
	// WalkDead is an object at Addr that did not survive.
	WalkDead
	// WalkMove is an object at Addr that now is at Dest.
	WalkMove
	// WalkSkip is Words words at Addr that hold nothing of interest. Given only if All is set.
	WalkSkip
	// WalkEnd ends a segment; Addr is where the cursor is. Given only if All is set.
	WalkEnd
)

// WalkTokens iterates over a blob of walk tokens (`allocs`, `moves`). Fields are valid after Next has returned true.
//
//	w := trace.NewWalkTokens(blob, types)
//	for w.Next() {
//		switch w.Kind { … }
//	}
//	if err := w.Err(); err != nil { … }
type WalkTokens struct {
	Kind   WalkKind
	Form   uint8  // the low bits of the token: 0 dead, 1 explicit move, 2–5 lane 0–3, 6 skip, 7 end
	Type   uint32 // of WalkDead and WalkMove
	Addr   uint64 // words from heap base
	Words  uint64 // size
	Length uint64 // elements, or words for types of variable size; 0 for instances
	Dest   uint64 // of WalkMove, words from heap base

	// All makes Next give skips and ends too.
	All bool
	// Alive makes Next pass over objects that did not survive. They are checked all the same.
	Alive bool

	buf   []byte
	pos   int
	types *TypeTable
	dense []typeEntry
	mask  uint64

	in       bool // within a segment
	cur, end uint64
	lanes    [Lanes]uint64
	k        uint8
	dest     uint64 // the newest explicit destination
	why      string
}

// NewWalkTokens begins to read blob, whose types must be in types. The iterator aliases both; types must not be filled
// meanwhile.
func NewWalkTokens(blob []byte, types *TypeTable) WalkTokens {
	return WalkTokens{buf: blob, types: types, dense: types.dense, mask: types.mask}
}

// Err gives what ended the iteration early, a *CorruptError with the offset in the blob, or nil.
func (w *WalkTokens) Err() error {
	if w.why == "" {
		return nil
	}
	return &CorruptError{Kind: KindEpoch, Event: "walk tokens", Offset: int64(w.pos), Why: w.why}
}

// Next goes to the next token and says whether there is one.
func (w *WalkTokens) Next() bool {
	for {
		if !w.in {
			return w.nextSegment()
		}
		if w.Alive && w.pos < len(w.buf) && w.buf[w.pos]&(1<<walkBits-1) == walkDead {
			w.skipDead()
		}
		// Everything below is what a replay spends its time on: one byte integers, a known instance type.
		pos, buf := w.pos, w.buf
		var tok uint64
		if pos < len(buf) && buf[pos] < 0x80 {
			tok = uint64(buf[pos])
			pos++
		} else if tok, pos = w.long(pos); pos < 0 {
			return false
		}
		form, v := uint8(tok&(1<<walkBits-1)), tok>>walkBits
		if form >= walkSkip {
			if !w.control(form, v, pos) || w.All {
				return w.why == ""
			}
			continue
		}

		var e typeEntry
		if v < uint64(len(w.dense)) {
			e = w.dense[v]
		}
		if e.form == formUndefined {
			if e = w.types.far[v]; e.form == formUndefined || v > MaxTypeID {
				return w.fail("token of an unknown type")
			}
		}
		var length, words uint64
		if e.form == formInstance {
			words = (uint64(e.base) + w.mask) &^ w.mask >> 3
		} else {
			if pos < len(buf) && buf[pos] < 0x80 {
				length = uint64(buf[pos])
				pos++
			} else if length, pos = w.long(pos); pos < 0 {
				return false
			}
			var ok bool
			if words, ok = e.words(length, w.mask); !ok {
				return w.fail("length out of range")
			}
		}
		if words > w.end-w.cur {
			return w.fail("object runs past the range")
		}

		w.Form, w.Type, w.Addr, w.Words, w.Length = form, uint32(v), w.cur, words, length
		w.cur += words
		if form == walkDead {
			if w.pos = pos; w.Alive {
				continue
			}
			w.Kind = WalkDead
			return true
		}
		var dest uint64
		if form == walkMove {
			if dest, pos = w.explicit(pos, words); pos < 0 {
				return false
			}
		} else {
			i := (form - walkLane0) & (Lanes - 1)
			dest = w.lanes[i]
			w.lanes[i] = dest + words
		}
		if dest > MaxAddr-words {
			return w.fail("destination out of range")
		}
		w.Kind, w.Dest, w.pos = WalkMove, dest, pos
		return true
	}
}

// long reads an integer at pos and gives the position behind it, negative if there is none.
func (w *WalkTokens) long(pos int) (v uint64, next int) {
	v, n := binary.Uvarint(w.buf[pos:])
	if n <= 0 {
		w.fail(varintWhy(n))
		return 0, -1
	}
	return v, pos + n
}

// control applies a token that is no object and ends before next: a skip or the end of the segment. It is false for a
// faulty one.
func (w *WalkTokens) control(form uint8, v uint64, next int) bool {
	w.Form, w.Addr, w.Words = form, w.cur, 0
	switch {
	case form == walkEnd && v != 0:
		return w.fail("end of segment with a value")
	case form == walkEnd:
		w.Kind, w.in = WalkEnd, false
	case v > w.end-w.cur:
		return w.fail("skip runs past the range")
	default:
		w.Kind, w.Words = WalkSkip, v
		w.cur += v
	}
	w.pos = next
	return true
}

// explicit reads a destination at pos and gives it with the position behind it, negative if there is none.
func (w *WalkTokens) explicit(pos int, words uint64) (dest uint64, next int) {
	v, next := w.long(pos)
	if next >= 0 {
		w.dest += uint64(unzigzag(v))
		w.lanes[w.k&(Lanes-1)] = w.dest + words
		w.k++
	}
	return w.dest, next
}

// skipDead steps over dead objects as long as their tokens are short and without a fault; whatever else comes is
// Next's. Nearly all of what depth full records dies in eden: this loop is what its replay costs.
func (w *WalkTokens) skipDead() {
	pos, cur, buf, dense, mask := w.pos, w.cur, w.buf, w.dense, w.mask
	for pos+4 <= len(buf) {
		tok, next := uint64(buf[pos]), pos+1
		if tok&(1<<walkBits-1) != walkDead {
			break
		}
		if tok >= 0x80 {
			b := uint64(buf[next])
			if b >= 0x80 {
				break
			}
			tok, next = tok&0x7f|b<<7, next+1
		}
		v := tok >> walkBits
		if v >= uint64(len(dense)) {
			break
		}
		e := dense[v]
		words := (uint64(e.base) + mask) &^ mask >> 3
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
			if words, ok = e.words(length, mask); !ok {
				break
			}
		}
		if words > w.end-cur {
			break
		}
		pos, cur = next, cur+words
	}
	w.pos, w.cur = pos, cur
}

// Moved is an object that moves: as WalkMove.
type Moved struct {
	Addr, Dest    uint64
	Words, Length uint32
	Type          uint32
}

// Moves fills out with the objects that come next, as long as each survives at a lane and its token is short and
// without a fault; skips between them it steps over. Whatever else comes is Next's. It gives how many there are.
func (w *WalkTokens) Moves(out []Moved) (n int) {
	if !w.in || w.All || w.pos < len(w.buf) && w.buf[w.pos]&(1<<walkBits-1) < walkLane0 {
		return 0
	}
	pos, cur, buf, dense, mask, lanes := w.pos, w.cur, w.buf, w.dense, w.mask, w.lanes
	for pos+8 <= len(buf) && n < len(out) {
		tok, next := uint64(buf[pos]), pos+1
		if tok >= 0x80 {
			b := uint64(buf[next])
			if b >= 0x80 {
				break
			}
			tok, next = tok&0x7f|b<<7, next+1
		}
		form, v := tok&(1<<walkBits-1), tok>>walkBits
		if form-walkLane0 >= Lanes {
			if form != walkSkip || v > w.end-cur {
				break
			}
			pos, cur = next, cur+v
			continue
		}
		if v >= uint64(len(dense)) {
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
		lane := &lanes[(form-walkLane0)&(Lanes-1)]
		if words > w.end-cur || *lane > MaxAddr-words {
			break
		}
		out[n] = Moved{cur, *lane, uint32(words), uint32(length), uint32(v)}
		n++
		*lane += words
		pos, cur = next, cur+words
	}
	w.pos, w.cur, w.lanes = pos, cur, lanes
	return n
}

func (w *WalkTokens) nextSegment() bool {
	if w.why != "" || w.pos == len(w.buf) {
		return false
	}
	c := cursor{buf: w.buf, pos: w.pos}
	start := w.end + uint64(c.s())
	words := c.u()
	switch {
	case !c.ok():
		return w.fail(c.why)
	case start > MaxAddr || words > MaxAddr-start:
		return w.fail("range out of the address space")
	}
	w.pos = c.pos
	w.in, w.cur, w.end = true, start, start+words
	w.Kind, w.Addr, w.Words = WalkSegment, start, words
	return true
}

func (w *WalkTokens) fail(why string) bool {
	w.why, w.in = why, false
	return false
}

// WalkEncoder writes a blob of walk tokens. Between Begin and End, tokens lie side by side from the segment's start on.
// Its errors are sticky: see Err.
type WalkEncoder struct {
	types    *TypeTable
	buf      []byte
	in       bool
	cur, end uint64
	lanes    [Lanes]uint64
	k        uint8
	dest     uint64
	why      string
}

// NewWalkEncoder begins an empty blob.
func NewWalkEncoder(types *TypeTable) *WalkEncoder { return &WalkEncoder{types: types} }

// Begin opens the segment [start, start+words).
func (e *WalkEncoder) Begin(start, words uint64) {
	if e.in || start > MaxAddr || words > MaxAddr-start {
		e.fail("Begin: segment open, or range out of the address space")
		return
	}
	e.buf = appendS(e.buf, int64(start-e.end))
	e.buf = appendU(e.buf, words)
	e.in, e.cur, e.end = true, start, start+words
}

// At gives the address of the next token.
func (e *WalkEncoder) At() uint64 { return e.cur }

// Dead writes an object that did not survive.
func (e *WalkEncoder) Dead(typ uint32, length uint64) { e.object(walkDead, typ, length) }

// Move writes an object that now is at dest, in the shortest form.
func (e *WalkEncoder) Move(typ uint32, length, dest uint64) {
	for i, l := range e.lanes {
		if l == dest {
			e.lanes[i] += e.object(walkLane0+uint64(i), typ, length)
			return
		}
	}
	n := e.object(walkMove, typ, length)
	e.buf = appendS(e.buf, int64(dest-e.dest))
	e.dest = dest
	e.lanes[e.k%Lanes] = dest + n
	e.k++
}

// SkipTo writes that nothing of interest is before addr; nothing is written if the cursor is there already.
func (e *WalkEncoder) SkipTo(addr uint64) {
	if addr == e.cur {
		return
	}
	if !e.in || addr < e.cur || addr > e.end {
		e.fail("SkipTo: out of the segment")
		return
	}
	e.buf = appendU(e.buf, (addr-e.cur)<<walkBits|walkSkip)
	e.cur = addr
}

// End closes the segment. The cursor need not have reached its end.
func (e *WalkEncoder) End() {
	if !e.in {
		e.fail("End: no segment open")
		return
	}
	e.buf = appendU(e.buf, walkEnd)
	e.in = false
}

// Bytes gives the blob written so far; it stays the encoder's.
func (e *WalkEncoder) Bytes() []byte { return e.buf }

// Err says what the caller did wrong first, if anything: a token outside of a segment, an unknown type.
func (e *WalkEncoder) Err() error {
	if e.in && e.why == "" {
		e.why = "segment left open"
	}
	if e.why == "" {
		return nil
	}
	return &CorruptError{Kind: KindEpoch, Event: "walk encoder", Offset: int64(len(e.buf)), Why: e.why}
}

func (e *WalkEncoder) object(form uint64, typ uint32, length uint64) uint64 {
	n, ok := e.types.Words(uint64(typ), length)
	if !ok || !e.in || n > e.end-e.cur {
		e.fail("object of unknown type or length, or out of the segment")
		return 0
	}
	e.buf = appendU(e.buf, uint64(typ)<<walkBits|form)
	if e.types.HasLength(uint64(typ)) {
		e.buf = appendU(e.buf, length)
	}
	e.cur += n
	return n
}

func (e *WalkEncoder) fail(why string) {
	if e.why == "" {
		e.why = why
	}
}
