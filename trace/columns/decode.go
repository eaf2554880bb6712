package columns

import (
	"encoding/binary"
	"io"
	"slices"

	"github.com/heapcam/heapcam/trace"
)

type reader struct {
	b    []byte
	fail bool
}

func (r *reader) u() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail, r.b = true, nil
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// symbol is what a code stands for.
type symbol struct {
	bytes uint64 // the token's bytes, little-endian
	n     uint8  // how many
	list  bool
	do    uint8 // ops: 1 an operand, 2 a destination, 4 end of the segment; skip 8: the operand is the token itself
}

const (
	doOperand = 1 << iota
	doDest
	doEnd
	doSkip
)

func symbolOf(key uint64) symbol {
	tok := key >> keyShift
	var t [8]byte
	s := symbol{n: uint8(binary.PutUvarint(t[:], tok)), list: key&keyList != 0}
	s.bytes = binary.LittleEndian.Uint64(t[:])
	if key&keyLength != 0 {
		s.do |= doOperand
	}
	switch {
	case s.list && tok == listEnd, !s.list && tok&(1<<formBits-1) == formEnd:
		s.do |= doEnd
	case !s.list && tok == formSkip:
		s.do, s.n = s.do|doSkip, 0
	case !s.list && tok&(1<<formBits-1) == formExplicit:
		s.do |= doDest
	}
	return s
}

// head is what is before the skeleton.
type head struct {
	skeleton uint64 // bytes
	blobs    []blob
	raw      uint64 // bytes of the whole, unpacked
	symbols  []symbol
	syms     uint64 // bytes of each column
	ops      uint64
	dests    uint64
	lists    []uint64 // of the operands of list tokens, by symbol
}

// head reads what is before the skeleton. r.fail says that it ends too early.
func (r *reader) head(limit int) (h head, err error) {
	h.skeleton = r.u()
	n := r.u()
	if n > uint64(limit) {
		return h, corrupt("more blobs than bytes")
	}
	h.raw = h.skeleton
	gaps := uint64(0)
	for range n {
		gap, size := r.u(), r.u()
		if r.fail {
			return h, nil
		}
		if gap > uint64(limit) || size>>1 > uint64(limit) {
			return h, corrupt("a blob beyond the limit")
		}
		h.blobs = append(h.blobs, blob{int(gap), int(size >> 1), size&1 != 0})
		h.raw += size >> 1
		gaps += gap
	}
	if h.raw > uint64(limit) || gaps > h.skeleton {
		return h, corrupt("longer than the limit")
	}
	n = r.u()
	if n > maxCodes {
		return h, corrupt("more symbols than codes")
	}
	h.symbols = make([]symbol, n)
	key := int64(0)
	for i := range h.symbols {
		d := r.u()
		key += int64(d>>1) ^ -int64(d&1)
		if key < 0 || key >= maxKey {
			return h, corrupt("symbol out of range")
		}
		h.symbols[i] = symbolOf(uint64(key))
	}
	h.syms, h.ops, h.dests = r.u(), r.u(), r.u()
	h.lists = make([]uint64, n)
	for i := range h.symbols {
		if s := &h.symbols[i]; s.list && s.do&doOperand != 0 {
			h.lists[i] = r.u()
		}
	}
	return h, nil
}

// Decode appends to dst what Encode was given. The result is refused as corrupt beyond limit bytes, before anything of
// that size is allocated. Its errors wrap ErrCorrupt.
func Decode(dst, b []byte, limit int) ([]byte, error) {
	r := reader{b: b}
	h, err := r.head(limit)
	if err != nil {
		return nil, err
	}
	skeleton := r.take(h.skeleton)
	d := decoder{symbols: h.symbols, syms: r.take(h.syms), ops: r.take(h.ops), dests: r.take(h.dests),
		lists: make([]column, len(h.symbols))}
	for i, n := range h.lists {
		d.lists[i] = newColumn(&h.symbols[i], r.take(n))
	}
	if r.fail || len(r.b) != 0 {
		return nil, corrupt("columns do not fill it")
	}
	start := len(dst)
	if need := int(h.raw); cap(dst)-len(dst) < need+8 {
		dst = append(make([]byte, 0, len(dst)+need+8), dst...)
	}
	for _, bl := range h.blobs {
		dst = append(dst, skeleton[:bl.gap]...)
		skeleton = skeleton[bl.gap:]
		var ok bool
		if dst, ok = d.blob(dst, bl); !ok {
			return nil, corrupt("tokens do not make up their blob")
		}
	}
	dst = append(dst, skeleton...)
	left := 0
	for i := range d.lists {
		left += d.lists[i].left()
	}
	if len(d.syms)+len(d.ops)+len(d.dests)+left != 0 || len(dst)-start != int(h.raw) {
		return nil, corrupt("something is left")
	}
	return dst, nil
}

// firstRead is how much DecodeWithoutTokens reads at once, bytes: as much as most frames have before their columns.
const firstRead = 16 << 10

// DecodeWithoutTokens appends to dst what Encode was given without its blobs of tokens: the blocks are whole, and each
// such blob is empty. from gives what Encode made and is read no further than needed; limit is as for Decode. Errors
// wrap ErrCorrupt or are those of from.
func DecodeWithoutTokens(dst []byte, from io.Reader, limit int) ([]byte, error) {
	var b []byte
	more := func(n int) error {
		at := len(b)
		b = slices.Grow(b, n)[:at+n]
		n, err := io.ReadFull(from, b[at:])
		b = b[:at+n]
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil // the reader that needs what is missing reports it
		}
		return err
	}
	for n := firstRead; ; n *= 2 {
		was := len(b)
		if err := more(n); err != nil {
			return nil, err
		}
		r := reader{b: b}
		h, err := r.head(limit)
		if err != nil {
			return nil, err
		}
		if r.fail {
			if len(b) == was {
				return nil, corrupt("it ends before its columns")
			}
			continue
		}
		if need := int(h.skeleton) - len(r.b); need > 0 {
			at := len(b) - len(r.b)
			if err := more(need); err != nil {
				return nil, err
			}
			r.b = b[at:]
		}
		skeleton := r.take(h.skeleton)
		if r.fail {
			return nil, corrupt("it ends before its columns")
		}
		return without(dst, skeleton, h.blobs)
	}
}

// without appends the blocks of a skeleton to dst, their blobs being empty.
func without(dst, skeleton []byte, blobs []blob) ([]byte, error) {
	next, at := 0, 0 // of the blob that comes next: bytes of skeleton before it
	if len(blobs) > 0 {
		at = blobs[0].gap
	}
	var payload []byte
	for from := 0; from < len(skeleton); {
		if len(skeleton)-from < trace.BlockHeaderSize {
			return nil, corrupt("a block without header")
		}
		h := skeleton[from : from+trace.BlockHeaderSize]
		n := int64(binary.LittleEndian.Uint32(h[4:]))
		from += trace.BlockHeaderSize
		if n > trace.MaxBlock {
			return nil, corrupt("a block beyond its bound")
		}
		pad := int64(trace.BlockSize(int(n))-trace.BlockHeaderSize) - n
		payload = payload[:0]
		for next < len(blobs) && int64(at-from) <= n {
			bl := blobs[next]
			n -= int64(bl.size)
			if at-from < 4 || n < int64(at-from) || binary.LittleEndian.Uint32(skeleton[at-4:]) != uint32(bl.size) {
				return nil, corrupt("a blob without its length")
			}
			payload = append(append(payload, skeleton[from:at-4]...), 0, 0, 0, 0)
			n -= int64(at - from)
			from = at
			if next++; next < len(blobs) {
				at += blobs[next].gap
			}
		}
		if int64(len(skeleton)-from) < n+pad {
			return nil, corrupt("a block that is not whole")
		}
		payload = append(payload, skeleton[from:from+int(n)]...)
		from += int(n + pad)
		dst = trace.AppendBlock(dst, trace.Block{Kind: trace.Kind(h[0]), Version: h[1],
			Flags: binary.LittleEndian.Uint16(h[2:]),
			Seq:   binary.LittleEndian.Uint64(h[8:]), Payload: payload})
	}
	if next < len(blobs) {
		return nil, corrupt("a blob outside of the blocks")
	}
	return dst, nil
}

// WithoutTokens appends to dst the blocks of payload without their blobs of tokens, as DecodeWithoutTokens does. It is
// nil if payload is not a sequence of whole blocks that can be read.
func WithoutTokens(dst, payload []byte) []byte {
	var rest []byte
	for at := 0; at < len(payload); {
		b, n, err := trace.ReadBlock(payload[at:])
		if err != nil || b.Version > trace.FormatVersion {
			return nil
		}
		if at += n; b.Kind == trace.KindEpoch || b.Kind == trace.KindSync || b.Kind == trace.KindSlice {
			from := 0
			rest = rest[:0]
			if trace.TokenBlobs(b, func(_ trace.Tag, off int, tokens []byte) {
				rest = append(append(rest, b.Payload[from:off-4]...), 0, 0, 0, 0)
				from = off + len(tokens)
			}) != nil {
				return nil
			}
			b.Payload = append(rest, b.Payload[from:]...)
			rest = b.Payload
		}
		dst = trace.AppendBlock(dst, b)
	}
	return dst
}

type decoder struct {
	symbols          []symbol
	syms, ops, dests []byte
	lists            []column // operands of list tokens, by symbol
}

// column is the operands of a symbol of lists, and what listed needs of it.
type column struct {
	b       []byte // one byte, which is never used up, of a symbol that has none
	read    int
	bytes   uint64 // of the symbol
	n       int    // how many; 0: listed leaves it out
	operand int    // 1: it has one
}

var noOperand [1]byte

func newColumn(s *symbol, b []byte) column {
	c := column{b: b}
	if s.list && s.do&^doOperand == 0 {
		c.bytes, c.n = s.bytes, int(s.n)
		if c.operand = int(s.do & doOperand); c.operand == 0 {
			c.b = noOperand[:]
		}
	}
	return c
}

// left is how many bytes were not read.
func (c *column) left() int {
	if c.n > 0 && c.operand == 0 {
		return 0
	}
	return len(c.b) - c.read
}

// listed decodes tokens of a list, as long as each is a symbol of one byte with at most one byte of operand. It gives
// the position in out behind them. out has 8 bytes behind end. Which symbols have an operand cannot be foreseen: so
// that is computed, and not branched on.
func (d *decoder) listed(out []byte, at, end int) int {
	syms, lists, i := d.syms, d.lists[:min(len(d.lists), short)], 0
	for i < len(syms) && at < end {
		c := int(syms[i])
		if c >= len(lists) {
			break
		}
		l := &lists[c]
		if l.n == 0 || uint(l.read) >= uint(len(l.b)) {
			break
		}
		v, next := l.b[l.read], at+l.n+l.operand
		if v >= 0x80 || next > end {
			break
		}
		binary.LittleEndian.PutUint64(out[at:], l.bytes)
		out[at+l.n] = v
		l.read += l.operand
		at = next
		i++
	}
	d.syms = syms[i:]
	return at
}

// blob appends one blob's tokens. dst has room for them and 8 bytes more. It is one long function because replay spends
// its time here: with its steps as functions it decodes 6 to 13 % slower (BenchmarkDecode).
func (d *decoder) blob(dst []byte, bl blob) ([]byte, bool) {
	at := len(dst)
	end := at + bl.size
	out := dst[: end+8 : cap(dst)]
	syms, ops, dests := d.syms, d.ops, d.dests
	in := false
	for at < end {
		if !in {
			for range 2 {
				n := operand(dests)
				if n == 0 || at+n > end {
					return nil, false
				}
				at += copy(out[at:], dests[:n])
				dests = dests[n:]
				if bl.list {
					break
				}
			}
			in = true
			continue
		}
		// Most tokens are one byte of a symbol without operands, or with an operand of one byte.
		i, o, symbols := 0, 0, d.symbols
		if !bl.list {
			for i < len(syms) && at < end {
				c := int(syms[i])
				if c >= short || c >= len(symbols) {
					break
				}
				s := &symbols[c]
				if s.do > doOperand || s.list {
					break
				}
				binary.LittleEndian.PutUint64(out[at:], s.bytes)
				if s.do != 0 {
					if o == len(ops) || ops[o] >= 0x80 || at+int(s.n) >= end {
						break
					}
					out[at+int(s.n)] = ops[o]
					o++
					at++
				}
				at += int(s.n)
				i++
			}
			syms, ops = syms[i:], ops[o:]
		} else {
			d.syms = syms
			at = d.listed(out, at, end)
			syms = d.syms
		}
		if at >= end {
			break
		}
		if len(syms) == 0 {
			return nil, false
		}
		c, n := int(syms[0]), 1
		if c >= short {
			if len(syms) < 2 {
				return nil, false
			}
			c, n = short+(c-short)<<8+int(syms[1]), 2
		}
		if c >= len(d.symbols) {
			return nil, false
		}
		syms = syms[n:]
		s := &d.symbols[c]
		if s.list != bl.list {
			return nil, false
		}
		binary.LittleEndian.PutUint64(out[at:], s.bytes)
		at += int(s.n)
		if s.do == 0 {
			continue
		}
		if s.do&doOperand != 0 {
			from := ops
			if bl.list {
				from = d.lists[c].b[d.lists[c].read:]
			}
			if n = operand(from); n == 0 || at+n > end {
				return nil, false
			}
			at += copy(out[at:], from[:n])
			if bl.list {
				d.lists[c].read += n
			} else {
				ops = ops[n:]
			}
		}
		if s.do&doDest != 0 {
			if n = operand(dests); n == 0 || at+n > end {
				return nil, false
			}
			at += copy(out[at:], dests[:n])
			dests = dests[n:]
		}
		if s.do&doEnd != 0 {
			in = false
		}
	}
	d.syms, d.ops, d.dests = syms, ops, dests
	return out[:end], at == end && !in
}
