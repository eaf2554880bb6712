package columns

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/heapcam/heapcam/trace"
)

// learn notes which types' tokens are followed by a length.
func (e *Encoder) learn(types []trace.Type) {
	for _, t := range types {
		if t.ID >= maxKey>>(keyShift+formBits) {
			continue
		}
		for uint64(len(e.lengths)) <= t.ID {
			e.lengths = append(e.lengths, false)
		}
		e.lengths[t.ID] = t.Flags&(trace.TypeArray|trace.TypeVariable) != 0
	}
}

// follows says what follows a token of that type.
func (e *Encoder) follows(id uint64) entry {
	if id < uint64(len(e.lengths)) && e.lengths[id] {
		return entryOperand
	}
	return 0
}

// entry is what is known of a token: its code in this frame + 1, and what follows it.
type entry uint32

const (
	entryCode    entry = 1<<16 - 1
	entryOperand entry = 1 << (16 + iota)
	entryDest
	entryEnd
	entrySkip
)

// table is the entries by token, one table for walks and one for lists.
type table []entry

// denseTokens bounds the tokens of a table, 4 bytes each: those of 32,768 types in walks. Later ones are in
// Encoder.far: the ids of a program that loads and drops classes rise for as long as it runs, but a frame names few.
const denseTokens = 1 << 18

// enter gives the entry of a token that has none yet in this frame; 0 if there is no code left for it.
func (e *Encoder) enter(tok uint64, list bool) entry {
	form := tok & (1<<formBits - 1)
	if !list && form == formSkip { // its words are an operand, and stay in the token
		tok = formSkip
	} else if tok >= maxKey>>keyShift {
		return 0
	}
	var do entry
	switch {
	case list && tok == listEnd, !list && form == formEnd:
		do = entryEnd
	case list && tok == listSkip:
		do = entryOperand
	case list:
		do = e.follows(tok - 1)
	case form == formSkip:
		do = entryOperand | entrySkip
	default:
		if do = e.follows(tok >> formBits); form == formExplicit {
			do |= entryDest
		}
	}
	key := tok << keyShift
	t := &e.walk
	if list {
		key |= keyList
		t = &e.list
	}
	if do&entryOperand != 0 {
		key |= keyLength
	}
	if tok < uint64(len(*t)) && (*t)[tok] != 0 { // a skip of other words
		return (*t)[tok]
	}
	if len(e.keys) == maxCodes {
		return 0
	}
	e.keys = append(e.keys, uint32(key))
	e.counts = append(e.counts, 0)
	x := entry(len(e.keys)) | do
	if tok >= denseTokens {
		if e.far == nil {
			e.far = map[uint32]entry{}
		}
		e.far[uint32(key)&^keyLength] = x
		return x
	}
	if n := uint64(len(*t)); tok >= n {
		*t = append(*t, make(table, min(tok+1+n/2, denseTokens)-n)...)
	}
	(*t)[tok] = x
	return x
}

// farther gives the entry of a token beyond the tables; 0: it has none.
func (e *Encoder) farther(tok uint64, list bool) entry {
	if tok >= maxKey>>keyShift {
		return 0
	}
	key := uint32(tok << keyShift)
	if list {
		key |= keyList
	}
	return e.far[key]
}

// forget clears the entry of a key.
func (e *Encoder) forget(key uint32) {
	if key>>keyShift >= denseTokens {
		delete(e.far, key&^keyLength)
	} else if key&keyList != 0 {
		e.list[key>>keyShift] = 0
	} else {
		e.walk[key>>keyShift] = 0
	}
}

// tokens appends a blob's tokens to the columns. It is false, and the columns hold rubbish behind where they ended, for
// what is not a sequence of tokens in its shortest form, ended as it should be.
func (e *Encoder) tokens(b []byte, list bool) bool {
	heads := 2 // integers at the start of a segment: where it begins and, for walks, its words
	known := &e.walk
	if list {
		heads, known = 1, &e.list
	}
	// Written by index: these loops are what the recorder spends its time on.
	syms, ops, dests := slices.Grow(e.syms, 2*len(b)+2), slices.Grow(e.ops, len(b)+1), slices.Grow(e.dests, len(b))
	out, opd := syms[:cap(syms)], ops[:cap(ops)]
	n, o := len(syms), len(ops)
	pos, in := 0, 0
	for pos < len(b) {
		if in < heads {
			if dests, pos = take(dests, b, pos); pos < 0 {
				return false
			}
			in++
			continue
		}
		if list {
			pos, n = e.listed(b, pos, out, n)
		} else {
			pos, n, o = simple(b, pos, *known, out, opd, n, o)
		}
		if pos == len(b) {
			break
		}
		at := pos
		tok, w := binary.Uvarint(b[at:])
		if w <= 0 || w > 1 && b[at+w-1] == 0 {
			return false
		}
		pos = at + w
		var x entry
		if tok < uint64(len(*known)) {
			x = (*known)[tok]
		} else if tok >= denseTokens {
			x = e.farther(tok, list)
		}
		if x == 0 {
			if x = e.enter(tok, list); x == 0 {
				return false
			}
		}
		if c := x&entryCode - 1; c < short {
			out[n] = byte(c)
			n++
		} else {
			c -= short
			out[n], out[n+1] = byte(short+c>>8), byte(c)
			n += 2
		}
		switch {
		case x&entrySkip != 0:
			o += copy(opd[o:], b[at:pos]) // the whole token
		case x&entryOperand == 0:
		case list:
			to := e.column(x)
			if *to, pos = take(*to, b, pos); pos < 0 {
				return false
			}
		default:
			w := operand(b[pos:])
			if w == 0 {
				return false
			}
			o += copy(opd[o:], b[pos:pos+w])
			pos += w
		}
		if x&entryDest != 0 {
			if dests, pos = take(dests, b, pos); pos < 0 {
				return false
			}
		}
		if x&entryEnd != 0 {
			in = 0
		}
	}
	e.syms, e.ops, e.dests = out[:n], opd[:o], dests
	return in == 0
}

// simple takes tokens of one or two bytes that are known, of symbols of one byte, without operand or with one of one
// byte. It gives the positions behind them, in the blob and in the columns of symbols and operands.
func simple(b []byte, pos int, known table, out, ops []byte, n, o int) (behind, syms, operands int) {
	for pos+4 <= len(b) && n < len(out) && o < len(ops) {
		next := pos + 1
		tok := uint(b[pos])
		if tok >= 0x80 {
			if b[next]-1 >= 0x7f {
				break
			}
			tok = tok&0x7f | uint(b[next])<<7
			next++
		}
		if tok >= uint(len(known)) {
			break
		}
		x := known[tok]
		if x-1 < short {
			out[n] = byte(x - 1)
			n++
			pos = next
			continue
		}
		if c := x - 1 - entryOperand; c < short && b[next] < 0x80 {
			out[n], ops[o] = byte(c), b[next]
			n++
			o++
			pos = next + 1
			continue
		}
		break
	}
	return pos, n, o
}

// listed is simple for the tokens of a list, whose operands are kept by symbol.
func (e *Encoder) listed(b []byte, pos int, out []byte, n int) (behind, syms int) {
	known, lists := e.list, e.lists
	for pos+4 <= len(b) && n < len(out) {
		next := pos + 1
		tok := uint(b[pos])
		if tok >= 0x80 {
			if b[next]-1 >= 0x7f {
				break
			}
			tok = tok&0x7f | uint(b[next])<<7
			next++
		}
		if tok >= uint(len(known)) {
			break
		}
		x := known[tok]
		if x-1 < short {
			out[n] = byte(x - 1)
			n++
			pos = next
			continue
		}
		c := x - 1 - entryOperand
		if c >= short || int(c) >= len(lists) || b[next] >= 0x80 {
			break
		}
		out[n] = byte(c)
		lists[c] = append(lists[c], b[next])
		n++
		pos = next + 1
	}
	return pos, n
}

// column gives the operands of a symbol of lists.
func (e *Encoder) column(x entry) *[]byte {
	for int(x&entryCode) > len(e.lists) {
		e.lists = append(e.lists, nil)
	}
	return &e.lists[x&entryCode-1]
}

// take appends the operand at b[pos:] to a column and gives the position behind it, negative if there is none.
func take(column, b []byte, pos int) ([]byte, int) {
	w := operand(b[pos:])
	if w == 0 {
		return column, -1
	}
	return append(column, b[pos:pos+w]...), pos + w
}

// operand gives the bytes of the LEB128 at the start of b, 0 if it is none. Its form need not be the shortest: it is
// copied.
func operand(b []byte) int {
	for i := 0; i < len(b) && i < binary.MaxVarintLen64; i++ {
		if b[i] < 0x80 {
			return i + 1
		}
	}
	return 0
}

// ranked is how many bytes of symbols rank looks at: those of a small frame, and enough of a large one.
const ranked = 256 << 10

// rank chooses the symbols that get the first codes of the next frame, in the order of their keys, which costs the
// table least.
func (e *Encoder) rank() {
	if len(e.syms) < 1<<12 && len(e.common[e.kind]) > 0 {
		return // too few to decide
	}
	for syms := e.syms[:min(len(e.syms), ranked)]; len(syms) > 0; {
		c, w := int(syms[0]), 1
		if c >= short && len(syms) > 1 {
			c, w = short+(c-short)<<8+int(syms[1]), 2
		}
		if c < len(e.counts) {
			e.counts[c]++
		}
		syms = syms[w:]
	}
	order := make([]uint16, 0, len(e.keys))
	for c, n := range e.counts {
		if n > 0 {
			order = append(order, uint16(c))
		}
	}
	slices.SortFunc(order, func(a, b uint16) int {
		return cmp.Or(cmp.Compare(e.counts[b], e.counts[a]), cmp.Compare(e.keys[a], e.keys[b]))
	})
	common := e.common[e.kind][:0]
	for _, c := range order[:min(len(order), short)] {
		common = append(common, e.keys[c])
	}
	slices.Sort(common)
	e.common[e.kind] = common
}
