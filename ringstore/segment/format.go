package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/heapcam/heapcam/ringstore/vfs"
	"github.com/heapcam/heapcam/trace/columns"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Layout of a ring file; part of the format, drawn in docs/format/ring-file.md.
const (
	Magic         = "HEAPCAMF"
	frameMagic    = "HCFR"
	formatVersion = 2 // 1: without index
	indexVersion  = 2
	HeaderSize    = 128
	FrameSize     = 64

	codecNone    = 0
	codecZstd    = 1
	codecColumns = 2 // package columns, then zstd
	codecS2      = 3

	// FlagHead marks the first frame of a file: definitions and, with FlagListing, a sync point.
	FlagHead = 1
	// FlagIndex marks the frame that closes a file: its payload is the index, no blocks.
	FlagIndex = 2
	// FlagListing marks a frame that holds a sync point.
	FlagListing = 4
	// FlagDefs marks a frame that holds definitions. FlagMarked says that FlagListing and FlagDefs were set where
	// they apply.
	FlagDefs   = 8
	FlagMarked = 16
	// FlagSummary marks a frame that holds a SUMMARY block alone.
	FlagSummary = 32
	// FlagRamp marks a frame that holds a slice of a listing that is spread over several frames; with FlagListing the
	// first one, with FlagComplete the last.
	FlagRamp     = 64
	FlagComplete = 128
	// FlagReferences marks a frame that holds parts of reference listings alone, with FlagListed the first or the last
	// part of one. FlagApart says that both were set where they apply, and that no other frame holds such parts.
	FlagReferences = 256
	FlagListed     = 512
	FlagApart      = 1024

	// MaxFrame bounds a frame's payload, stored and raw: a shared ring holds no more.
	MaxFrame = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is CRC-32C, that of all headers, payloads and documents of a recording.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Header is the head of a ring file.
type Header struct {
	Version    uint32 // set by decoding
	Number     uint64 // in the ring
	Created    uint64 // Unix ns
	Session    string
	PID, NSPID uint32
	StartTicks uint64
}

func (h Header) Encode() []byte {
	b := make([]byte, HeaderSize)
	copy(b, Magic)
	le := binary.LittleEndian
	le.PutUint32(b[8:], formatVersion)
	le.PutUint32(b[12:], HeaderSize)
	le.PutUint64(b[16:], h.Number)
	le.PutUint64(b[24:], h.Created)
	copy(b[32:64], h.Session)
	le.PutUint32(b[64:], h.PID)
	le.PutUint32(b[68:], h.NSPID)
	le.PutUint64(b[72:], h.StartTicks)
	le.PutUint32(b[124:], crc32.Checksum(b[:124], castagnoli))
	return b
}

// decodeHeader reads field by field: magic, then version, then the rest, so that a later version is
// no damage.
func decodeHeader(name string, b []byte) (Header, error) {
	var h Header
	le := binary.LittleEndian
	if len(b) < HeaderSize {
		return h, &DamageError{File: name, Err: ErrTorn, Whole: true, last: true,
			Why: fmt.Sprintf("torn: it has %d bytes, and a ring file at least %d", len(b), HeaderSize)}
	}
	if string(b[:8]) != Magic {
		return h, NotOurs(name, int64(len(b)))
	}
	if v := le.Uint32(b[8:]); v > formatVersion {
		if knownBut(b) {
			return h, Corrupt(name, 8, fmt.Sprintf("the checksum of the file header is wrong (it says version %d)", v))
		}
		return h, &TooNewError{name, v, formatVersion}
	}
	if le.Uint32(b[124:]) != crc32.Checksum(b[:124], castagnoli) {
		return h, Corrupt(name, 0, "the checksum of the file header is wrong")
	}
	for _, c := range b[32:64] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return h, Corrupt(name, 32, "session is not hexadecimal")
		}
	}
	return Header{
		Version: le.Uint32(b[8:]), Number: le.Uint64(b[16:]), Created: le.Uint64(b[24:]), Session: string(b[32:64]),
		PID: le.Uint32(b[64:]), NSPID: le.Uint32(b[68:]), StartTicks: le.Uint64(b[72:]),
	}, nil
}

// knownBut says that a header is one of a known version but for the version in it: that is damaged. A later version may
// have a header of another form, so that its checksum is not asked for.
func knownBut(b []byte) bool {
	h := bytes.Clone(b[:HeaderSize])
	for v := uint32(1); v <= formatVersion; v++ {
		binary.LittleEndian.PutUint32(h[8:], v)
		if binary.LittleEndian.Uint32(h[124:]) == crc32.Checksum(h[:124], castagnoli) {
			return true
		}
	}
	return false
}

// FrameInfo describes a frame: the position in the shared ring behind its last block (so that a new recorder knows
// where to continue), collections (0: none) and times in ns since the probe's start.
type FrameInfo struct {
	Source          uint64
	FirstGC, LastGC uint64
	T0, T1          uint64
	Flags           uint16 // FlagListing to FlagApart
}

// Frame is a frame's header.
type Frame struct {
	FrameInfo
	Offset      int64 // in the file
	Codec       uint8
	Stored, Raw uint32
	crc         uint32
}

// End is the offset behind the frame.
func (f Frame) End() int64 { return f.Offset + FrameSize + int64(f.Stored) }

// encodeFrame appends the header of f to dst; stored is what follows it, in parts.
func encodeFrame(dst []byte, f Frame, stored [][]byte) []byte {
	var b [FrameSize]byte
	putFrame(b[:], f, stored)
	return append(dst, b[:]...)
}

// putFrame writes f's header to b, which is zero.
func putFrame(b []byte, f Frame, stored [][]byte) {
	size, sum := 0, uint32(0)
	for _, part := range stored {
		size += len(part)
		sum = crc32.Update(sum, castagnoli, part)
	}
	copy(b, frameMagic)
	b[4] = f.Codec
	le := binary.LittleEndian
	le.PutUint16(b[5:], f.Flags)
	le.PutUint32(b[8:], uint32(size))
	le.PutUint32(b[12:], f.Raw)
	le.PutUint64(b[16:], f.Source)
	le.PutUint64(b[24:], f.FirstGC)
	le.PutUint64(b[32:], f.LastGC)
	le.PutUint64(b[40:], f.T0)
	le.PutUint64(b[48:], f.T1)
	le.PutUint32(b[56:], sum)
	le.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
}

func decodeFrame(name string, at int64, b []byte) (Frame, error) {
	if len(b) < FrameSize {
		return Frame{}, ErrTorn
	}
	le := binary.LittleEndian
	if string(b[:4]) != frameMagic {
		return Frame{}, Corrupt(name, at, "there is no frame here")
	}
	if le.Uint32(b[60:]) != crc32.Checksum(b[:60], castagnoli) {
		return Frame{}, Corrupt(name, at, "the checksum of a frame header is wrong")
	}
	f := Frame{Offset: at, Codec: b[4], Stored: le.Uint32(b[8:]), Raw: le.Uint32(b[12:]), crc: le.Uint32(b[56:])}
	f.FrameInfo = FrameInfo{le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint64(b[32:]), le.Uint64(b[40:]),
		le.Uint64(b[48:]), le.Uint16(b[5:])}
	if f.Stored > MaxFrame || f.Raw > MaxFrame || f.Codec > codecS2 || f.Codec == codecNone && f.Stored != f.Raw {
		return Frame{}, Corrupt(name, at, "lengths or codec of a frame make no sense")
	}
	return f, nil
}

// payload checks and unpacks what was stored for f. scratch is memory that it uses again.
func (f Frame) payload(name string, stored []byte, dec *zstd.Decoder, scratch *[]byte) ([]byte, error) {
	if Checksum(stored) != f.crc {
		return nil, Corrupt(name, f.Offset, "the checksum of a frame is wrong")
	}
	if f.Codec == codecNone {
		return stored, nil
	}
	bad := func(err error) error {
		return Corrupt(name, f.Offset, fmt.Sprintf("frame of %d bytes does not unpack to %d: %v", f.Stored, f.Raw, err))
	}
	var out []byte
	var err error
	switch f.Codec {
	case codecS2:
		n, e := s2.DecodedLen(stored)
		if e != nil || n != int(f.Raw) || !plausible(n, len(stored)) {
			return nil, bad(e)
		}
		out, err = s2.Decode(nil, stored)
	default:
		if f.Codec == codecColumns {
			out = (*scratch)[:0]
		}
		if n := min(int(f.Raw), 64*len(stored)+1<<20); cap(out) < n {
			out = make([]byte, 0, n)
		}
		out, err = dec.DecodeAll(stored, out)
		if f.Codec == codecColumns {
			if *scratch = out[:0]; cap(out) > KeepBuffer {
				*scratch = nil
			}
			if err == nil {
				out, err = columns.Decode(nil, out, int(f.Raw))
			}
		}
	}
	if err != nil || len(out) != int(f.Raw) {
		return nil, bad(err)
	}
	return out, nil
}

// payloadWithoutTokens gives what was stored for f without its tokens; nil if that fails. It keeps nothing of stored.
// scratch is memory that it uses again. dec must be for this alone: it may stop inside the frame.
func (f Frame) payloadWithoutTokens(stored []byte, dec *zstd.Decoder, scratch *[]byte) []byte {
	switch f.Codec {
	case codecNone:
		return columns.WithoutTokens(nil, stored)
	case codecS2:
		n, err := s2.DecodedLen(stored)
		if err != nil || n != int(f.Raw) || !plausible(n, len(stored)) {
			return nil
		}
		out, err := s2.Decode((*scratch)[:cap(*scratch)], stored)
		if err != nil {
			return nil
		}
		if *scratch = out[:0]; cap(out) > KeepBuffer {
			*scratch = nil
		}
		return columns.WithoutTokens(nil, out)
	case codecColumns:
	default:
		return nil
	}
	if dec.Reset(bytes.NewReader(stored)) != nil {
		return nil
	}
	out, err := columns.DecodeWithoutTokens(nil, dec, int(f.Raw))
	if err != nil {
		return nil
	}
	return out
}

// plausible says whether an S2 frame may become so long: its length is believed before it is unpacked.
func plausible(raw, stored int) bool { return raw <= 1<<20+256*stored }

func HeaderOf(fs vfs.FS, path string) (Header, error) {
	f, err := fs.OpenRead(path)
	if err != nil {
		return Header{}, err
	}
	defer f.Close()
	var b [HeaderSize]byte
	n, _ := f.ReadAt(b[:], 0)
	return decodeHeader(path, b[:n])
}
