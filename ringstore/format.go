package ringstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"
)

// Layout of a ring file; part of the format (docs/format/ring-file.md).
//
//	file header, 128 bytes:  0 "HEAPCAMF" | 8 u32 version | 12 u32 header size | 16 u64 index | 24 u64 created (Unix ms)
//	                         32 session, 32 bytes hex | 64 u32 pid | 68 u32 zero | 72 u64 start ticks | 80 … zero | 124 u32 CRC-32C of 0..124
//	frame header, 72 bytes:  0 "HCFR" | 4 u8 codec | 5 u8 version | 6 u16 flags | 8 u32 stored | 12 u32 raw
//	                         16 u64 source | 24 u64 first gc | 32 u64 last gc | 40 u64 t0 | 48 u64 t1 | 56 u64 zero
//	                         64 u32 CRC-32C of the stored payload | 68 u32 CRC-32C of 0..68
const (
	fileMagic       = "HEAPCAMF"
	frameMagic      = "HCFR"
	formatVersion   = 1
	fileHeaderSize  = 128
	frameHeaderSize = 72

	codecNone = 0
	codecZstd = 1

	// FlagHead marks the first frame of a file: definitions and a sync point.
	FlagHead = 1

	// MaxFrame bounds a frame's payload, stored and raw: a shared ring holds no more.
	MaxFrame = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrTorn says that a file ends inside a frame: the writer was stopped. What came before is sound.
var ErrTorn = errors.New("torn: the file ends inside a frame")

// CorruptError says where a file does not hold what was written.
type CorruptError struct {
	File   string
	Offset int64
	Why    string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: corrupt at offset %d: %s", e.File, e.Offset, e.Why)
}

// TooNewError says that a file was written by a later heapcam. It is not damage.
type TooNewError struct {
	File    string
	Version uint32
}

func (e *TooNewError) Error() string {
	return fmt.Sprintf("%s: format version %d is newer than this heapcam reads (%d): use a newer heapcam", e.File, e.Version, formatVersion)
}

// LimitError says that a write would break the limit and was not made.
type LimitError struct{ Need, Room int64 }

func (e *LimitError) Error() string {
	return fmt.Sprintf("ring full: %d bytes needed, %d left below the limit", e.Need, e.Room)
}

// IdentityError says that a folder holds the recording of another JVM.
type IdentityError struct{ Dir, Has, Want string }

func (e *IdentityError) Error() string {
	return fmt.Sprintf("%s holds the recording of session %s, not %s: choose another folder", e.Dir, e.Has, e.Want)
}

// Identity is whose recording a folder holds.
type Identity struct {
	Session    string // 32 hex digits
	PID        uint32
	StartTicks uint64
}

// FileHeader is the head of a ring file.
type FileHeader struct {
	Version   uint32
	Index     uint64
	CreatedMS uint64
	Identity  Identity
}

func (h FileHeader) encode() []byte {
	b := make([]byte, fileHeaderSize)
	copy(b, fileMagic)
	le := binary.LittleEndian
	le.PutUint32(b[8:], formatVersion)
	le.PutUint32(b[12:], fileHeaderSize)
	le.PutUint64(b[16:], h.Index)
	le.PutUint64(b[24:], h.CreatedMS)
	copy(b[32:64], h.Identity.Session)
	le.PutUint32(b[64:], h.Identity.PID)
	le.PutUint64(b[72:], h.Identity.StartTicks)
	le.PutUint32(b[124:], crc32.Checksum(b[:124], castagnoli))
	return b
}

// decodeFileHeader reads field by field: magic, then version, then the rest, so that a later version is told apart from damage.
func decodeFileHeader(name string, b []byte) (FileHeader, error) {
	le := binary.LittleEndian
	if len(b) < fileHeaderSize {
		return FileHeader{}, ErrTorn
	}
	if string(b[:8]) != fileMagic {
		return FileHeader{}, &CorruptError{name, 0, "not a ring file"}
	}
	h := FileHeader{Version: le.Uint32(b[8:]), Index: le.Uint64(b[16:]), CreatedMS: le.Uint64(b[24:])}
	if h.Version > formatVersion {
		return h, &TooNewError{name, h.Version}
	}
	if h.Version == 0 || le.Uint32(b[124:]) != crc32.Checksum(b[:124], castagnoli) {
		return h, &CorruptError{name, 0, "checksum of the file header"}
	}
	for _, c := range b[32:64] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return h, &CorruptError{name, 32, "session is not hexadecimal"}
		}
	}
	h.Identity = Identity{Session: string(b[32:64]), PID: le.Uint32(b[64:]), StartTicks: le.Uint64(b[72:])}
	return h, nil
}

// FrameInfo describes a frame: the position in the shared ring behind its last block (so that a new recorder knows where to go on),
// collections (0: none) and times in ns since the probe's start.
type FrameInfo struct {
	Source          uint64
	FirstGC, LastGC uint64
	T0, T1          uint64
}

// Frame is a frame's header.
type Frame struct {
	FrameInfo
	Offset      int64 // in the file
	Codec       uint8
	Flags       uint16
	Stored, Raw uint32
	crc         uint32
}

func encodeFrame(dst []byte, f Frame, stored []byte) []byte {
	var b [frameHeaderSize]byte
	copy(b[:], frameMagic)
	b[4], b[5] = f.Codec, formatVersion
	le := binary.LittleEndian
	le.PutUint16(b[6:], f.Flags)
	le.PutUint32(b[8:], uint32(len(stored)))
	le.PutUint32(b[12:], f.Raw)
	le.PutUint64(b[16:], f.Source)
	le.PutUint64(b[24:], f.FirstGC)
	le.PutUint64(b[32:], f.LastGC)
	le.PutUint64(b[40:], f.T0)
	le.PutUint64(b[48:], f.T1)
	le.PutUint32(b[64:], crc32.Checksum(stored, castagnoli))
	le.PutUint32(b[68:], crc32.Checksum(b[:68], castagnoli))
	return append(append(dst, b[:]...), stored...)
}

func decodeFrame(name string, at int64, b []byte) (Frame, error) {
	if len(b) < frameHeaderSize {
		return Frame{}, ErrTorn
	}
	le := binary.LittleEndian
	if string(b[:4]) != frameMagic {
		return Frame{}, &CorruptError{name, at, "no frame here"}
	}
	if le.Uint32(b[68:]) != crc32.Checksum(b[:68], castagnoli) {
		return Frame{}, &CorruptError{name, at, "checksum of a frame header"}
	}
	if b[5] > formatVersion {
		return Frame{}, &TooNewError{name, uint32(b[5])}
	}
	f := Frame{Offset: at, Codec: b[4], Flags: le.Uint16(b[6:]), Stored: le.Uint32(b[8:]), Raw: le.Uint32(b[12:]), crc: le.Uint32(b[64:])}
	f.FrameInfo = FrameInfo{le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint64(b[32:]), le.Uint64(b[40:]), le.Uint64(b[48:])}
	if f.Stored > MaxFrame || f.Raw > MaxFrame || f.Codec > codecZstd || f.Codec == codecNone && f.Stored != f.Raw {
		return Frame{}, &CorruptError{name, at, "lengths or codec of a frame make no sense"}
	}
	return f, nil
}

// payload checks and unpacks what was stored for f.
func (f Frame) payload(name string, stored []byte, dec *zstd.Decoder) ([]byte, error) {
	if crc32.Checksum(stored, castagnoli) != f.crc {
		return nil, &CorruptError{name, f.Offset, "checksum of a frame"}
	}
	if f.Codec == codecNone {
		return stored, nil
	}
	out, err := dec.DecodeAll(stored, make([]byte, 0, min(int(f.Raw), 64*len(stored)+1<<20)))
	if err != nil || len(out) != int(f.Raw) {
		return nil, &CorruptError{name, f.Offset, fmt.Sprintf("frame of %d bytes does not unpack to %d: %v", f.Stored, f.Raw, err)}
	}
	return out, nil
}
