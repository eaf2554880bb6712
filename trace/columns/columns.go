// Package columns rearranges blocks so that a general compressor packs them better and faster. In the stream, types,
// lengths and destinations of the tokens of walks and lists alternate. Here each of them becomes a column, and frequent
// symbols become single bytes.
//
// It is a pure transformation of bytes: Decode gives back exactly what Encode was given, whatever that was. What does
// not parse as blocks or tokens stays as it is. It does not compress. The result holds all that a reader needs, so a
// lost frame costs only itself.
//
// The layout is drawn in docs/format/ring-file.md ("Columns").
package columns

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/heapcam/heapcam/trace"
)

// A symbol is a token without operands; its key is token<<2 | list<<1 | has length. Skips of a walk are one symbol,
// their words an operand.
const (
	keyLength = 1
	keyList   = 2
	keyShift  = 2

	formBits     = 3
	formExplicit = 1
	formSkip     = 6
	formEnd      = 7

	listEnd  = 0
	listSkip = 1

	// maxKey bounds the keys that get a code: type ids are small numbers in practice, and tables are indexed by them.
	maxKey = 1 << 22
	// short is how many symbols of a frame are one byte; the other codes are two.
	short = 192
	// maxCodes bounds the symbols of a frame.
	maxCodes = short + (256-short)<<8
)

// ErrCorrupt says that what Decode was given is not what Encode makes.
var ErrCorrupt = errors.New("corrupt columns")

func corrupt(why string) error { return fmt.Errorf("%w: %s", ErrCorrupt, why) }

// Encoder rearranges one payload after the other of one stream of blocks. It learns the types from the DEFS blocks that
// it sees and which symbols are frequent; neither is needed for decoding. Not safe for concurrent use.
type Encoder struct {
	lengths    []bool           // by type id
	walk, list table            // by token, of this frame
	far        map[uint32]entry // of tokens beyond these tables, by key without keyLength
	counts     []uint32         // by code, of the syms that rank looks at
	keys       []uint32         // by code
	// keys that get the first codes of the next frame; of frames that are epochs, and of those that are listings
	common [2][]uint32
	kind   int // of this frame

	blobs                      []blob
	gap                        int // bytes of skeleton before it are those of blobs
	skeleton, syms, ops, dests []byte
	lists                      [][]byte // operands of list tokens, by code
	marks                      []int
	cuts                       []Cut
}

type blob struct {
	gap, size int // bytes of skeleton before it, its own
	list      bool
}

// Encode appends a payload, a sequence of blocks, to dst in its new order. The payload is parts, one behind the other,
// each of whole blocks.
func (e *Encoder) Encode(dst []byte, parts ...[]byte) []byte {
	e.begin(parts)
	for _, p := range parts {
		e.part(p)
	}
	return e.finish(dst)
}

// part takes in a part of the payload.
func (e *Encoder) part(payload []byte) {
	from := 0 // what of the part is not in the skeleton yet
	for at := 0; at < len(payload); {
		b, n, err := trace.ReadBlock(payload[at:])
		if err != nil {
			break
		}
		start := at + trace.BlockHeaderSize
		at += n
		if b.Version > trace.FormatVersion {
			continue
		}
		switch b.Kind {
		case trace.KindDefs:
			if d, err := trace.DecodeDefs(b); err == nil {
				e.learn(d.Types)
			}
		case trace.KindEpoch, trace.KindSync, trace.KindSlice:
			_ = trace.TokenBlobs(b, func(tag trace.Tag, off int, tokens []byte) {
				list := tag == trace.TagList || tag == trace.TagBirths || tag == trace.TagAgain
				if e.take(tokens, list) {
					e.skeleton = append(e.skeleton, payload[from:start+off]...)
					e.blobs = append(e.blobs, blob{len(e.skeleton) - e.gap, len(tokens), list})
					e.gap, from = len(e.skeleton), start+off+len(tokens)
				}
			})
		}
	}
	e.skeleton = append(e.skeleton, payload[from:]...)
}

// take appends a blob's tokens to the columns, unless it is false: then nothing has changed.
func (e *Encoder) take(tokens []byte, list bool) bool {
	syms, ops, dests := len(e.syms), len(e.ops), len(e.dests)
	if list {
		e.mark()
	}
	if e.tokens(tokens, list) {
		return true
	}
	e.syms, e.ops, e.dests = e.syms[:syms], e.ops[:ops], e.dests[:dests]
	if list {
		e.back()
	}
	return false
}

// Cut is an offset, from where Encode began to write, at which what follows is of another kind: a compressor that
// begins anew there does better. Plain: what follows hardly repeats, so that a quick one does as well.
type Cut struct {
	At    int
	Plain bool
}

// Cuts gives the cuts of the newest Encode. They are valid until the next one.
func (e *Encoder) Cuts() []Cut { return e.cuts }

// minPart is the smallest part that is worth a beginning of its own, bytes.
const minPart = 2 << 10

// cut notes that another kind begins at at, unless one of the two parts is too small to decide.
func (e *Encoder) cut(at, next int, plain bool) {
	last := 0
	if n := len(e.cuts); n > 0 {
		last = e.cuts[n-1].At
	}
	if at-last >= minPart && next >= minPart {
		e.cuts = append(e.cuts, Cut{at, plain})
	}
}

// mark and back are for a blob of list tokens that turns out to be none.
func (e *Encoder) mark() {
	e.marks = e.marks[:0]
	for _, l := range e.lists {
		e.marks = append(e.marks, len(l))
	}
}

func (e *Encoder) back() {
	for c := range e.lists {
		n := 0
		if c < len(e.marks) {
			n = e.marks[c]
		}
		e.lists[c] = e.lists[c][:n]
	}
}

// listing says whether most of a payload is a SYNC: 1, else 0.
func listing(parts [][]byte) int {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	for _, p := range parts {
		for at := 0; at < len(p); {
			b, n, err := trace.ReadBlock(p[at:])
			if err != nil {
				break
			}
			if at += n; b.Kind == trace.KindSync && n > size/2 {
				return 1
			}
		}
	}
	return 0
}

func (e *Encoder) begin(parts [][]byte) {
	e.kind, e.gap = listing(parts), 0
	for c := range e.lists {
		e.lists[c] = e.lists[c][:0]
	}
	e.blobs, e.skeleton, e.syms, e.ops, e.dests = e.blobs[:0], e.skeleton[:0], e.syms[:0], e.ops[:0], e.dests[:0]
	for _, k := range e.keys {
		e.forget(k)
	}
	e.keys, e.counts = e.keys[:0], e.counts[:0]
	for _, k := range e.common[e.kind] {
		e.enter(uint64(k>>keyShift), k&keyList != 0)
	}
}

// finish writes the frame and notes which symbols were frequent.
func (e *Encoder) finish(dst []byte) []byte {
	u := binary.AppendUvarint
	start := len(dst)
	e.cuts = e.cuts[:0]
	dst = u(dst, uint64(len(e.skeleton)))
	dst = u(dst, uint64(len(e.blobs)))
	for _, b := range e.blobs {
		list := uint64(0)
		if b.list {
			list = 1
		}
		dst = u(u(dst, uint64(b.gap)), uint64(b.size)<<1|list)
	}
	dst = u(dst, uint64(len(e.keys)))
	prev := uint32(0)
	for _, k := range e.keys {
		dst = binary.AppendVarint(dst, int64(k)-int64(prev))
		prev = k
	}
	dst = u(u(u(dst, uint64(len(e.syms))), uint64(len(e.ops))), uint64(len(e.dests)))
	for c, k := range e.keys {
		if k&keyList != 0 && k&keyLength != 0 {
			dst = u(dst, uint64(len(e.listOps(c))))
		}
	}
	dst = append(dst, e.skeleton...)
	lists := 0
	for _, l := range e.lists {
		lists += len(l)
	}
	for i, part := range [...][]byte{e.syms, e.ops, e.dests} {
		e.cut(len(dst)-start, len(part), i == 2)
		dst = append(dst, part...)
	}
	e.cut(len(dst)-start, lists, false)
	for c, k := range e.keys {
		if k&keyList != 0 && k&keyLength != 0 {
			dst = append(dst, e.listOps(c)...)
		}
	}
	for c := range e.lists { // a rare large listing must not hold its memory for ever
		if cap(e.lists[c]) > keepList {
			e.lists[c] = nil
		}
	}
	e.rank()
	return dst
}

// keepList bounds the columns of lists that are kept for the next frame, bytes.
const keepList = 64 << 10

func (e *Encoder) listOps(code int) []byte {
	if code < len(e.lists) {
		return e.lists[code]
	}
	return nil
}
