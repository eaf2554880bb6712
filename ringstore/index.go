package ringstore

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// Layout of the index, the payload of the frame that closes a file; part of the format, drawn in docs/format/ring-file.md.
const (
	indexHead   = 40 // count u32, zero u32, 32 bytes that are zero and are not read
	indexEntry  = 40 // stored u32, codec u8, flags u8, zero u16, first gc, last gc, t0, t1
	trailerSize = 32
	trailMagic  = "HCFE"

	// maxIndex bounds the frames of one file, so that its index is a frame like others.
	maxIndex = (MaxFrame - indexHead - trailerSize) / indexEntry
)

// indexSize is what a file of n frames takes to be closed.
func indexSize(n int) int64 { return frameSize + indexHead + int64(n)*indexEntry + trailerSize }

// index is what is known of the frames of a file without reading them.
type index struct {
	frames []Frame // raw sizes and checksums are not known
	info   FrameInfo
	at     int64 // of the index frame
}

// add counts a frame in.
func (x *index) add(f Frame) {
	x.frames = append(x.frames, f)
	x.widen(f.FrameInfo)
}

// widen makes info hold what f holds too.
func (x *index) widen(f FrameInfo) {
	x.info.Source = max(x.info.Source, f.Source)
	if f.FirstGC > 0 && (x.info.FirstGC == 0 || f.FirstGC < x.info.FirstGC) {
		x.info.FirstGC = f.FirstGC
	}
	x.info.LastGC = max(x.info.LastGC, f.LastGC)
	if f.T1 > 0 && (x.info.T1 == 0 || f.T0 < x.info.T0) {
		x.info.T0 = f.T0
	}
	x.info.T1 = max(x.info.T1, f.T1)
}

// encode gives the index frame that closes a file at offset at.
func (x *index) encode(at int64) []byte {
	le := binary.LittleEndian
	p := make([]byte, indexSize(len(x.frames))-frameSize)
	le.PutUint32(p, uint32(len(x.frames)))
	for i, f := range x.frames {
		e := p[indexHead+i*indexEntry:]
		le.PutUint32(e, f.Stored)
		e[4], e[5] = f.Codec, f.Flags
		le.PutUint64(e[8:], f.FirstGC)
		le.PutUint64(e[16:], f.LastGC)
		le.PutUint64(e[24:], f.T0)
		le.PutUint64(e[32:], f.T1)
	}
	t := p[len(p)-trailerSize:]
	copy(t, trailMagic)
	le.PutUint64(t[8:], uint64(at))
	le.PutUint64(t[16:], uint64(at)+frameSize+uint64(len(p)))
	le.PutUint32(t[28:], crc32.Checksum(t[:28], castagnoli))
	f := Frame{FrameInfo: x.info, Raw: uint32(len(p))}
	f.Flags = FlagIndex | FlagMarked
	return encodeFrame(nil, f, p)
}

// readIndex gives the index of a closed file; nil if it has none or an unsound one: then its frames are gone through.
// why is empty unless there is an index that its checksums call whole, and that is not this file's.
func readIndex(name string, r io.ReaderAt, size int64) (x *index, why string) {
	if size < headerSize+indexSize(0) {
		return nil, ""
	}
	var t [trailerSize]byte
	if _, err := r.ReadAt(t[:], size-trailerSize); err != nil && err != io.EOF {
		return nil, ""
	}
	le := binary.LittleEndian
	at := le.Uint64(t[8:])
	if string(t[:4]) != trailMagic || le.Uint32(t[28:]) != crc32.Checksum(t[:28], castagnoli) || le.Uint64(t[16:]) != uint64(size) ||
		at < headerSize || at > uint64(size-indexSize(0)) || size-int64(at) > frameSize+MaxFrame {
		return nil, ""
	}
	b := make([]byte, size-int64(at)) // bounded by the file and by MaxFrame
	if _, err := r.ReadAt(b, int64(at)); err != nil && err != io.EOF {
		return nil, ""
	}
	f, err := decodeFrame(name, int64(at), b)
	if err != nil || f.Flags&FlagIndex == 0 || f.Codec != codecNone || f.end() != size || crc32.Checksum(b[frameSize:], castagnoli) != f.crc {
		return nil, ""
	}
	p := b[frameSize:]
	n := int64(le.Uint32(p))
	if int64(len(p)) != indexSize(int(n))-frameSize {
		return nil, "its count is not its length"
	}
	x = &index{info: f.FrameInfo, at: int64(at)}
	x.info.Flags = 0
	off := int64(headerSize)
	x.frames = make([]Frame, n)
	for i := range x.frames {
		e := p[indexHead+i*indexEntry:]
		fr := Frame{Offset: off, Codec: e[4], Stored: le.Uint32(e)}
		fr.FrameInfo = FrameInfo{0, le.Uint64(e[8:]), le.Uint64(e[16:]), le.Uint64(e[24:]), le.Uint64(e[32:]), e[5]}
		off = fr.end()
		x.frames[i] = fr
	}
	if off != int64(at) {
		return nil, "its frames do not end where it begins"
	}
	// The index of another file of the same shape is whole, too. That would show in most frames; the first and the last
	// are two reads.
	for i := int64(0); i < n; i += max(n-1, 1) {
		var h [frameSize]byte
		if _, err := r.ReadAt(h[:], x.frames[i].Offset); err != nil && err != io.EOF {
			return nil, ""
		}
		if fr, err := decodeFrame(name, x.frames[i].Offset, h[:]); err == nil && !x.frames[i].same(fr) {
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
func (x *index) disagrees(y *index) string {
	if len(x.frames) != len(y.frames) {
		return fmt.Sprintf("it has %d frames, the file %d", len(x.frames), len(y.frames))
	}
	for i := range x.frames {
		if !x.frames[i].same(y.frames[i]) {
			return fmt.Sprintf("it says something else of the frame at %d than that frame does", y.frames[i].Offset)
		}
	}
	if y.info.Flags = 0; x.info != y.info {
		return "what it says of the whole file is not what the frames say"
	}
	return ""
}
