package trace

import (
	"encoding/binary"
	"iter"
)

// Framing of blocks; part of the format.
//
//	 byte 0        1          2       4             8                      16
//	+--------+----------+--------+-------------+----------------------+---------------------+ pad to 8
//	| kind u8| version u8| flags u16| length u32 |       seq u64        |  payload (length B) |
//	+--------+----------+--------+-------------+----------------------+---------------------+
const (
	BlockHeaderSize = 16
	BlockAlign      = 8
	// BlockPartial is reserved.
	BlockPartial = 1
)

// BlockSize gives the bytes that a block with so many bytes of payload takes, header and padding included.
func BlockSize(payload int) int { return BlockHeaderSize + (payload+BlockAlign-1)&^(BlockAlign-1) }

// Size gives the bytes that b takes, header and padding included.
func (b Block) Size() int { return BlockSize(len(b.Payload)) }

// AppendBlock appends b, framed and padded, to dst. A Version of 0 is written as FormatVersion. The payload must not be
// longer than MaxBlock: a longer one is a mistake of the program, which would write what no reader takes, so it panics.
func AppendBlock(dst []byte, b Block) []byte {
	if len(b.Payload) > MaxBlock {
		panic("trace: AppendBlock: payload longer than MaxBlock")
	}
	if b.Version == 0 {
		b.Version = FormatVersion
	}
	dst = append(dst, byte(b.Kind), b.Version)
	dst = binary.LittleEndian.AppendUint16(dst, b.Flags)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b.Payload)))
	dst = binary.LittleEndian.AppendUint64(dst, b.Seq)
	dst = append(dst, b.Payload...)
	var zero [BlockAlign]byte
	return append(dst, zero[:BlockSize(len(b.Payload))-BlockHeaderSize-len(b.Payload)]...)
}

// ReadBlock reads the block at the start of p and gives it with the bytes it takes, padding included. The payload
// aliases p. Blocks of newer versions and unknown kinds are framed alike and are given too: the decoders tell them
// apart. Errors: ErrTorn when p ends within the block (an empty p too), *CorruptError.
func ReadBlock(p []byte) (b Block, size int, err error) {
	if len(p) < BlockHeaderSize {
		return Block{}, 0, ErrTorn
	}
	n := binary.LittleEndian.Uint32(p[4:])
	switch {
	case n > MaxBlock:
		return Block{}, 0, &CorruptError{Offset: 4, Why: "length beyond MaxBlock"}
	case p[0] == 0:
		return Block{}, 0, &CorruptError{Offset: 0, Why: "kind 0"}
	case p[1] == 0:
		return Block{}, 0, &CorruptError{Offset: 1, Why: "version 0"}
	}
	size = BlockSize(int(n))
	if len(p) < size {
		return Block{}, 0, ErrTorn
	}
	end := BlockHeaderSize + int(n)
	for i, x := range p[end:size] {
		if x != 0 {
			return Block{}, 0, &CorruptError{Offset: int64(end + i), Why: "padding is not zero"}
		}
	}
	return Block{
		Kind:    Kind(p[0]),
		Version: p[1],
		Flags:   binary.LittleEndian.Uint16(p[2:]),
		Seq:     binary.LittleEndian.Uint64(p[8:]),
		Payload: p[BlockHeaderSize:end:end],
	}, size, nil
}

// Blocks iterates over the blocks of p, which begins with one. It ends after the last, or yields one error (see
// ReadBlock; offsets count from the start of p) and ends.
func Blocks(p []byte) iter.Seq2[Block, error] {
	return func(yield func(Block, error) bool) {
		for off := 0; off < len(p); {
			b, n, err := ReadBlock(p[off:])
			if err != nil {
				if c, ok := err.(*CorruptError); ok {
					c.Offset += int64(off)
				}
				yield(Block{}, err)
				return
			}
			if !yield(b, nil) {
				return
			}
			off += n
		}
	}
}

// check says whether a decoder for kind k may read b's payload.
func (b Block) check(k Kind) error {
	if b.Kind != k {
		return &KindError{b.Kind, k}
	}
	if b.Version > FormatVersion {
		return &TooNewError{b.Version}
	}
	return nil
}
