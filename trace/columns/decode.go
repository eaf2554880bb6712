package columns

import (
	"encoding/binary"
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

// Decode appends to dst what Encode was given. The result is refused as corrupt beyond limit bytes, before anything of that size is
// allocated. Its errors wrap ErrCorrupt.
func Decode(dst, b []byte, limit int) ([]byte, error) {
	r := reader{b: b}
	skeletonSize, n := r.u(), r.u()
	if n > uint64(len(r.b)) {
		return nil, corrupt("more blobs than bytes")
	}
	blobs := make([]blob, n)
	total, gaps := skeletonSize, uint64(0)
	for i := range blobs {
		gap, size := r.u(), r.u()
		if gap > uint64(limit) || size>>1 > uint64(limit) {
			return nil, corrupt("a blob beyond the limit")
		}
		blobs[i] = blob{int(gap), int(size >> 1), size&1 != 0}
		total += size >> 1
		gaps += gap
	}
	if total > uint64(limit) || gaps > skeletonSize {
		return nil, corrupt("longer than the limit")
	}
	n = r.u()
	if n > maxCodes || n > uint64(len(r.b)) {
		return nil, corrupt("more symbols than codes")
	}
	symbols := make([]symbol, n)
	key := int64(0)
	for i := range symbols {
		d := r.u()
		key += int64(d>>1) ^ -int64(d&1)
		if key < 0 || key >= maxKey {
			return nil, corrupt("symbol out of range")
		}
		symbols[i] = symbolOf(uint64(key))
	}
	ns, no, nd := r.u(), r.u(), r.u()
	lists := make([][]byte, len(symbols)) // operands of list tokens by symbol
	sizes := make([]uint64, len(symbols))
	for i := range symbols {
		if s := &symbols[i]; s.list && s.do&doOperand != 0 {
			sizes[i] = r.u()
		}
	}
	skeleton := r.take(skeletonSize)
	d := decoder{symbols: symbols, syms: r.take(ns), ops: r.take(no), dests: r.take(nd), lists: lists}
	for i, n := range sizes {
		lists[i] = r.take(n)
	}
	if r.fail || len(r.b) != 0 {
		return nil, corrupt("columns do not fill it")
	}
	start := len(dst)
	if need := int(total); cap(dst)-len(dst) < need+8 {
		dst = append(make([]byte, 0, len(dst)+need+8), dst...)
	}
	for _, bl := range blobs {
		dst = append(dst, skeleton[:bl.gap]...)
		skeleton = skeleton[bl.gap:]
		var ok bool
		if dst, ok = d.blob(dst, bl); !ok {
			return nil, corrupt("tokens do not make up their blob")
		}
	}
	dst = append(dst, skeleton...)
	left := 0
	for _, l := range lists {
		left += len(l)
	}
	if len(d.syms)+len(d.ops)+len(d.dests)+left != 0 || len(dst)-start != int(total) {
		return nil, corrupt("something is left")
	}
	return dst, nil
}

type decoder struct {
	symbols          []symbol
	syms, ops, dests []byte
	lists            [][]byte
}

// blob appends one blob's tokens. dst has room for them and 8 bytes more.
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
			from := &ops
			if bl.list {
				from = &d.lists[c]
			}
			if n = operand(*from); n == 0 || at+n > end {
				return nil, false
			}
			at += copy(out[at:], (*from)[:n])
			*from = (*from)[n:]
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
