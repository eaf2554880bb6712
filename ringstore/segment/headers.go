package segment

import (
	"errors"
	"io"
	"iter"
	"slices"
)

// Headers iterates over the headers of the frames, that of the index apart. Damage is yielded as an error
// (*DamageError) and reading continues at the next frame header that is sound.
func (f *File) Headers() iter.Seq2[Frame, error] { return f.headers(HeaderSize) }

// headers is Headers from the frame at the offset from on.
func (f *File) headers(from int64) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		at := from
		for at < f.Size {
			b := make([]byte, min(f.Size-at, FrameSize))
			if _, err := f.r.ReadAt(b, at); err != nil && err != io.EOF {
				yield(Frame{}, err)
				return
			}
			fr, err := decodeFrame(f.Name, at, b)
			if err == nil && at+FrameSize+int64(fr.Stored) > f.Size {
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
				at += FrameSize + int64(fr.Stored)
				continue
			}
			next := f.resync(at + 1)
			d := &DamageError{File: f.Name, Offset: at, Why: "the file ends inside a frame", Err: ErrTorn}
			errors.As(err, &d)
			switch {
			case next >= 0 && d.Err == ErrTorn:
				d = &DamageError{File: f.Name, Offset: at, Why: "the length of a frame is wrong", Err: ErrCorrupt}
			case next < 0:
				d = &DamageError{File: f.Name, Offset: at, Why: d.Why, Err: d.Err, last: true}
				if f.unwritten(at) {
					d.Err = ErrTorn
				}
				if d.Err == ErrTorn {
					d.Why = "the file was cut off here"
				} else {
					d.Why += "; nothing after it can be read"
				}
			}
			if !yield(Frame{}, d) || next < 0 {
				return
			}
			at = next
		}
	}
}

// badIndex says what is wrong with an index frame that cannot be used.
func (f *File) badIndex(fr Frame) error {
	d := &DamageError{File: f.Name, Offset: fr.Offset, Why: "an index inside the file", Err: ErrCorrupt}
	if fr.End() < f.Size {
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
	b := make([]byte, min(f.Size-at, FrameSize))
	if _, err := f.r.ReadAt(b, at); err != nil && err != io.EOF {
		return false
	}
	if len(b) < FrameSize {
		n := min(len(b), len(frameMagic))
		return string(b[:n]) == frameMagic[:n] || f.zeros(at)
	}
	return f.zeros(at + FrameSize - 4) // the header's checksum
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
		at = f.behindHole(at + int64(n))
	}
	return true
}

// behindHole gives where to read on behind zeros that end at an offset: a file may have a hole of any length, which its
// file system knows, and which takes for ever to read.
func (f *File) behindHole(at int64) int64 {
	for _, of := range []any{f.c, f.r} { // the latter of a file that somebody else closes
		if h, ok := of.(interface{ NextData(int64) int64 }); ok {
			return h.NextData(at)
		}
	}
	return at
}

// resync finds the next sound frame header at or behind at; -1: none.
func (f *File) resync(at int64) int64 {
	b := make([]byte, 4096+FrameSize) // grows: mostly the next frame is near
	for at < f.Size {
		n, err := f.r.ReadAt(b, at)
		if err != nil && err != io.EOF {
			return -1
		}
		for i := 0; i+FrameSize <= n; i++ {
			if b[i] == frameMagic[0] && string(b[i:i+4]) == frameMagic {
				if fr, err := decodeFrame(f.Name, at+int64(i), b[i:i+FrameSize]); err == nil &&
					at+int64(i)+FrameSize+int64(fr.Stored) <= f.Size {
					return at + int64(i)
				}
			}
		}
		at += int64(len(b) - FrameSize + 1)
		if !slices.ContainsFunc(b[:n], func(c byte) bool { return c != 0 }) {
			at = max(at, f.behindHole(at)-FrameSize) // a frame may begin just before
		}
		if len(b) < 1<<20 {
			b = make([]byte, 2*len(b))
		}
	}
	return -1
}
