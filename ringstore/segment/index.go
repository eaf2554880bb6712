package segment

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// Layout of the index, the payload of the frame that closes a file; part of the format, drawn in
// docs/format/ring-file.md.
const (
	indexHead   = 40 // count u32, zero u32, 32 bytes that are zero and are not read
	indexEntry  = 40 // stored u32, codec u8, flags u16, zero u8, first gc, last gc, t0, t1
	trailerSize = 32
	trailMagic  = "HCFE"

	// MaxFrames bounds the frames of one file, so that its index is a frame like others.
	MaxFrames = (MaxFrame - indexHead - trailerSize) / indexEntry
)

// IndexSize is what a file of n frames takes to be closed.
func IndexSize(n int) int64 { return FrameSize + indexHead + int64(n)*indexEntry + trailerSize }

// Index is what is known of the frames of a segment without reading them.
//
// Owner: the Writer, Stream or File that it is of. Lifetime: theirs; the zero value is an index of no frames.
// Concurrency: one goroutine while frames are added, any number after that.
// Errors: none. An index that does not fit its file is not used, and the file says why (File.CheckIndex).
type Index struct {
	Frames []Frame // raw sizes and checksums are not known
	Info   FrameInfo
	at     int64 // of the index frame
}

// Add counts a frame in.
func (x *Index) Add(f Frame) {
	x.Frames = append(x.Frames, f)
	x.Widen(f.FrameInfo)
}

// Widen makes info hold what f holds too.
func (x *Index) Widen(f FrameInfo) {
	x.Info.Source = max(x.Info.Source, f.Source)
	if f.FirstGC > 0 && (x.Info.FirstGC == 0 || f.FirstGC < x.Info.FirstGC) {
		x.Info.FirstGC = f.FirstGC
	}
	x.Info.LastGC = max(x.Info.LastGC, f.LastGC)
	if f.T1 > 0 && (x.Info.T1 == 0 || f.T0 < x.Info.T0) {
		x.Info.T0 = f.T0
	}
	x.Info.T1 = max(x.Info.T1, f.T1)
}

// Listing says how much of a listing a segment holds.
type Listing uint8

// What a segment may hold of a listing. Ramping: a part of one; whoever starts here does not get to know all.
const (
	Unlisted Listing = iota
	Ramping
	Complete
)

// Listing says how much of a listing the frames hold, and where the newest one begins.
func (x *Index) Listing() (l Listing, from int64) {
	for _, f := range x.Frames {
		if f.Flags&FlagListing != 0 {
			from = f.Offset
			l = max(l, Ramping)
		}
		if f.Flags&FlagComplete != 0 && l != Unlisted || f.Flags&(FlagListing|FlagRamp) == FlagListing {
			l = Complete
		}
	}
	return l, from
}

// encode gives the index frame that closes a file at offset at.
func (x *Index) encode(at int64) []byte {
	le := binary.LittleEndian
	p := make([]byte, IndexSize(len(x.Frames))-FrameSize)
	le.PutUint32(p, uint32(len(x.Frames)))
	for i, f := range x.Frames {
		e := p[indexHead+i*indexEntry:]
		le.PutUint32(e, f.Stored)
		e[4] = f.Codec
		le.PutUint16(e[5:], f.Flags)
		le.PutUint64(e[8:], f.FirstGC)
		le.PutUint64(e[16:], f.LastGC)
		le.PutUint64(e[24:], f.T0)
		le.PutUint64(e[32:], f.T1)
	}
	t := p[len(p)-trailerSize:]
	copy(t, trailMagic)
	le.PutUint64(t[8:], uint64(at))
	le.PutUint64(t[16:], uint64(at)+FrameSize+uint64(len(p)))
	le.PutUint32(t[28:], crc32.Checksum(t[:28], castagnoli))
	f := Frame{FrameInfo: x.Info, Raw: uint32(len(p))}
	f.Flags = FlagIndex | FlagMarked
	return append(encodeFrame(nil, f, [][]byte{p}), p...)
}

// readIndex gives the index of a closed file; nil if it has none or an unsound one: then its frames are gone through.
// why is empty unless there is an index that its checksums call whole, and that is not this file's.
func readIndex(name string, r io.ReaderAt, size int64) (x *Index, why string) {
	if size < HeaderSize+IndexSize(0) {
		return nil, ""
	}
	var t [trailerSize]byte
	if _, err := r.ReadAt(t[:], size-trailerSize); err != nil && err != io.EOF {
		return nil, ""
	}
	le := binary.LittleEndian
	at := le.Uint64(t[8:])
	if string(t[:4]) != trailMagic || le.Uint32(t[28:]) != crc32.Checksum(t[:28], castagnoli) ||
		le.Uint64(t[16:]) != uint64(size) ||
		at < HeaderSize || at > uint64(size-IndexSize(0)) || size-int64(at) > FrameSize+MaxFrame {
		return nil, ""
	}
	b := make([]byte, size-int64(at)) // bounded by the file and by MaxFrame
	if _, err := r.ReadAt(b, int64(at)); err != nil && err != io.EOF {
		return nil, ""
	}
	f, err := decodeFrame(name, int64(at), b)
	if err != nil || f.Flags&FlagIndex == 0 || f.Codec != codecNone || f.End() != size ||
		crc32.Checksum(b[FrameSize:], castagnoli) != f.crc {
		return nil, ""
	}
	p := b[FrameSize:]
	n := int64(le.Uint32(p))
	if int64(len(p)) != IndexSize(int(n))-FrameSize {
		return nil, "its count is not its length"
	}
	x = &Index{Info: f.FrameInfo, at: int64(at)}
	x.Info.Flags = 0
	off := int64(HeaderSize)
	x.Frames = make([]Frame, n)
	for i := range x.Frames {
		e := p[indexHead+i*indexEntry:]
		fr := Frame{Offset: off, Codec: e[4], Stored: le.Uint32(e)}
		fr.FrameInfo = FrameInfo{0, le.Uint64(e[8:]), le.Uint64(e[16:]), le.Uint64(e[24:]), le.Uint64(e[32:]),
			le.Uint16(e[5:])}
		off = fr.End()
		x.Frames[i] = fr
	}
	if off != int64(at) {
		return nil, "its frames do not end where it begins"
	}
	// The index of another file of the same shape is whole, too. That would show in most frames; the first and the last
	// are two reads.
	for i := int64(0); i < n; i += max(n-1, 1) {
		var h [FrameSize]byte
		if _, err := r.ReadAt(h[:], x.Frames[i].Offset); err != nil && err != io.EOF {
			return nil, ""
		}
		if fr, err := decodeFrame(name, x.Frames[i].Offset, h[:]); err == nil && !x.Frames[i].same(fr) {
			return nil, fmt.Sprintf("it says something else of the frame at %d than that frame does", fr.Offset)
		}
	}
	return x, ""
}

// same says whether the frame fr is what the index says in f.
func (f Frame) same(fr Frame) bool {
	fr.Source, fr.Raw, fr.crc = 0, 0, 0
	return f == fr
}

// disagrees says in what the index x, read with the file, differs from y, made of the frames that are there; "" if in
// nothing.
func (x *Index) disagrees(y *Index) string {
	if len(x.Frames) != len(y.Frames) {
		return fmt.Sprintf("it has %d frames, the file %d", len(x.Frames), len(y.Frames))
	}
	for i := range x.Frames {
		if !x.Frames[i].same(y.Frames[i]) {
			return fmt.Sprintf("it says something else of the frame at %d than that frame does", y.Frames[i].Offset)
		}
	}
	if y.Info.Flags = 0; x.Info != y.Info {
		return "what it says of the whole file is not what the frames say"
	}
	return ""
}
