package ringstore

import (
	"errors"
	"hash/crc32"
	"io"
	"iter"

	"github.com/klauspost/compress/zstd"

	"github.com/heapcam/heapcam/trace"
)

// File is one ring file opened for reading, on its own or inside a container.
type File struct {
	Name    string
	header  fileHeader
	Session string
	Index   uint64 // number in the ring
	Size    int64
	r       io.ReaderAt
	c       io.Closer
	x       *index // nil: it was not closed, or is older than indexes
	noIndex string // why an index that is whole is not taken
}

// OpenFile opens a single ring file. Errors: *DamageError, *TooNewError, I/O errors.
func OpenFile(path string) (*File, error) { return OpenFileIn(OS, path) }

// OpenFileIn is OpenFile in any file system.
func OpenFileIn(fs FS, path string) (*File, error) {
	f, err := fs.OpenRead(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Info()
	if err != nil {
		f.Close()
		return nil, err
	}
	out, err := newFile(path, f, st.Size)
	if err != nil {
		f.Close()
		return nil, err
	}
	out.c = f
	return out, nil
}

func newFile(name string, r io.ReaderAt, size int64) (*File, error) {
	b := make([]byte, min(size, headerSize))
	if _, err := r.ReadAt(b, 0); err != nil && err != io.EOF {
		return nil, err
	}
	h, err := decodeHeader(name, b)
	if err != nil {
		return nil, err
	}
	f := &File{Name: name, header: h, Index: h.index, Session: h.session, Size: size, r: r}
	f.x, f.noIndex = readIndex(name, r, size)
	return f, nil
}

// Window is what a file holds: the newest position in the shared ring, collections and times, as FrameInfo.
type Window struct {
	FrameInfo
	Frames int
	Closed bool // by an index, from which this is known
}

// Window says what the file holds, from its index or, if it has none, from the headers of its frames.
func (f *File) Window() Window {
	if f.x != nil {
		return Window{f.x.info, len(f.x.frames), true}
	}
	x := index{}
	for fr, err := range f.Headers() {
		if err == nil {
			x.add(fr)
		}
	}
	return Window{x.info, len(x.frames), false}
}

// sound says whether what is stored for fr is what was written.
func (f *File) sound(fr Frame) bool {
	sum, at, left := uint32(0), fr.Offset+frameSize, int64(fr.Stored)
	b := make([]byte, min(left, 1<<20))
	for left > 0 {
		n, err := f.r.ReadAt(b[:min(left, int64(len(b)))], at)
		if n == 0 {
			_ = err
			return false
		}
		sum = crc32.Update(sum, castagnoli, b[:n])
		at, left = at+int64(n), left-int64(n)
	}
	return sum == fr.crc
}

// Close closes the file.
func (f *File) Close() error {
	if f.c != nil {
		return f.c.Close()
	}
	return nil
}

// Headers iterates over the headers of the frames, that of the index apart. Damage is yielded as an error (*DamageError) and reading goes on at the next frame header that is sound.
func (f *File) Headers() iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		at := int64(headerSize)
		for at < f.Size {
			b := make([]byte, min(f.Size-at, frameSize))
			if _, err := f.r.ReadAt(b, at); err != nil && err != io.EOF {
				yield(Frame{}, err)
				return
			}
			fr, err := decodeFrame(f.Name, at, b)
			if err == nil && at+frameSize+int64(fr.Stored) > f.Size {
				err = ErrTorn
			}
			if err == nil {
				if fr.Flags&FlagIndex == 0 {
					if !yield(fr, nil) {
						return
					}
				} else if f.x == nil { // the frames are there without it
					if !yield(Frame{}, f.badIndex(fr)) {
						return
					}
				}
				at += frameSize + int64(fr.Stored)
				continue
			}
			next := f.resync(at + 1)
			d := &DamageError{File: f.Name, Offset: at, Why: "the frame is not whole", Err: ErrTorn}
			errors.As(err, &d)
			switch {
			case next >= 0 && d.Err == ErrTorn:
				d = &DamageError{File: f.Name, Offset: at, Why: "length of a frame", Err: ErrCorrupt}
			case next < 0:
				d = &DamageError{File: f.Name, Offset: at, Why: "no whole frame follows (" + d.Why + ")", Err: d.Err, last: true}
				if f.unwritten(at) {
					d.Err = ErrTorn
				}
			}
			if !yield(Frame{}, d) || next < 0 {
				return
			}
			at = next
		}
	}
}

// badIndex says what is wrong with an index frame that can not be used.
func (f *File) badIndex(fr Frame) error {
	d := &DamageError{File: f.Name, Offset: fr.Offset, Why: "an index inside the file", Err: ErrCorrupt}
	if fr.end() < f.Size {
		return d
	}
	d.Why, d.last = "the index is not what was written; the frames are read without it", true
	if f.noIndex != "" {
		d.Why = "the index is not that of this file (" + f.noIndex + "); the frames are read without it"
	} else if f.zeros(f.Size-trailerSize) && !f.sound(fr) {
		d.Err = ErrTorn
	}
	return d
}

// unwritten says whether the frame at the end of a file is one that did not reach the disk whole: from somewhere in its
// header on there are zeros, as a machine that loses its power leaves them, or there is less than a header, which
// begins like one. What else is no frame is no torn one.
func (f *File) unwritten(at int64) bool {
	b := make([]byte, min(f.Size-at, frameSize))
	if _, err := f.r.ReadAt(b, at); err != nil && err != io.EOF {
		return false
	}
	if len(b) < frameSize {
		n := min(len(b), len(frameMagic))
		return string(b[:n]) == frameMagic[:n] || f.zeros(at)
	}
	return f.zeros(at + frameSize - 4) // the header's checksum
}

// zeros says whether there is nothing but zeros from at on.
func (f *File) zeros(at int64) bool {
	b := make([]byte, 64<<10)
	for at < f.Size {
		n, err := f.r.ReadAt(b[:min(int64(len(b)), f.Size-at)], at)
		if n == 0 && err != nil {
			return false
		}
		for _, c := range b[:n] {
			if c != 0 {
				return false
			}
		}
		at += int64(n)
	}
	return true
}

// resync finds the next sound frame header at or behind at; -1: none.
func (f *File) resync(at int64) int64 {
	b := make([]byte, 4096+frameSize) // grows: mostly the next frame is near
	for at < f.Size {
		n, err := f.r.ReadAt(b, at)
		if err != nil && err != io.EOF {
			return -1
		}
		for i := 0; i+frameSize <= n; i++ {
			if b[i] == frameMagic[0] && string(b[i:i+4]) == frameMagic {
				if fr, err := decodeFrame(f.Name, at+int64(i), b[i:i+frameSize]); err == nil && at+int64(i)+frameSize+int64(fr.Stored) <= f.Size {
					return at + int64(i)
				}
			}
		}
		at += int64(len(b) - frameSize + 1)
		if len(b) < 1<<20 {
			b = make([]byte, 2*len(b))
		}
	}
	return -1
}

// Definitions iterates over the blocks of the frames that hold definitions; of files that do not say which, over all. Errors as Frames.
func (f *File) Definitions() iter.Seq2[trace.Block, error] {
	return f.blocks(func(fr Frame) bool { return fr.Flags&FlagMarked == 0 || fr.Flags&(FlagDefs|FlagHead) != 0 })
}

// Summaries iterates over the summaries of the file and what they need to be read: META and definitions. Errors as Frames.
func (f *File) Summaries() iter.Seq2[trace.Block, error] {
	frames := f.blocks(func(fr Frame) bool {
		return fr.Flags&FlagMarked == 0 || fr.Flags&(FlagDefs|FlagHead|FlagSummary) != 0
	})
	return func(yield func(trace.Block, error) bool) {
		for b, err := range frames {
			if err == nil && b.Kind != trace.KindMeta && b.Kind != trace.KindDefs && b.Kind != trace.KindSummary {
				continue
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// Skim iterates over all blocks as Blocks does, but of EPOCH blocks it may leave out the tokens: then their blobs are empty. Where frames hold
// columns these are most of what there is to unpack. The checksums of all frames are looked at. Errors as Blocks.
func (f *File) Skim() iter.Seq2[trace.Block, error] { return f.blocksOf(f.frames(nil, true)) }

// Frames iterates over frames with their payloads (whole blocks of the stream). Errors as Headers; a frame whose payload is damaged is
// yielded with the error and a nil payload.
func (f *File) Frames() iter.Seq2[FrameData, error] { return f.frames(nil, false) }

// frames leaves out the frames that want, unless nil, does not want, and with skim tokens of EPOCH blocks.
func (f *File) frames(want func(Frame) bool, skim bool) iter.Seq2[FrameData, error] {
	return func(yield func(FrameData, error) bool) {
		dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxFrame))
		if err != nil {
			yield(FrameData{}, err)
			return
		}
		defer dec.Close()
		var stored []byte
		var part *zstd.Decoder
		if skim {
			if part, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxFrame)); err != nil {
				yield(FrameData{}, err)
				return
			}
			defer part.Close()
		}
		for fr, err := range f.Headers() {
			if err == nil && want != nil && !want(fr) {
				continue
			}
			d := FrameData{Frame: fr}
			if err == nil {
				if cap(stored) < int(fr.Stored) || !skim || fr.Codec == codecNone {
					stored = make([]byte, fr.Stored) // bounded: Headers checked it against the file
				}
				stored = stored[:fr.Stored]
				if _, err = f.r.ReadAt(stored, fr.Offset+frameSize); err == nil || err == io.EOF {
					if skim && fr.Codec == codecColumns && fr.Flags&(FlagMarked|FlagListing) == FlagMarked && crc32.Checksum(stored, castagnoli) == fr.crc {
						d.Payload = fr.skim(stored, part)
					}
					if d.Payload == nil {
						d.Payload, err = fr.payload(f.Name, stored, dec)
					}
				}
				if fr.Codec == codecNone { // it is the payload; else it is read into again
					stored = nil
				}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// Blocks iterates over the blocks of all frames. Errors as Frames; a block that cannot be framed is damage too.
func (f *File) Blocks() iter.Seq2[trace.Block, error] { return f.blocks(nil) }

func (f *File) blocks(want func(Frame) bool) iter.Seq2[trace.Block, error] {
	return f.blocksOf(f.frames(want, false))
}

func (f *File) blocksOf(frames iter.Seq2[FrameData, error]) iter.Seq2[trace.Block, error] {
	return func(yield func(trace.Block, error) bool) {
		for fr, err := range frames {
			if err != nil {
				if !yield(trace.Block{}, err) {
					return
				}
				continue
			}
			for b, err := range trace.Blocks(fr.Payload) {
				if err != nil {
					err = corrupt(f.Name, fr.Offset, err.Error())
				}
				if !yield(b, err) {
					return
				}
			}
		}
	}
}

// From is Blocks from the frame on that holds collection gc: for who knows already what was defined before. Frames that are left out are not read.
func (f *File) From(gc uint64) iter.Seq2[trace.Block, error] {
	return func(yield func(trace.Block, error) bool) {
		past := false
		f.blocks(func(fr Frame) bool {
			past = past || fr.LastGC >= gc
			return past
		})(yield)
	}
}

// FrameData is a frame and its unpacked payload.
type FrameData struct {
	Frame
	Payload []byte
}
