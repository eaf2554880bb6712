package segment

import (
	"hash/crc32"
	"io"
	"strings"

	"github.com/heapcam/heapcam/ringstore/vfs"
)

// File is a segment opened for reading, on its own or inside a container.
//
// Owner: who opened it, who must Close it. Lifetime: from Open, OpenIn, OpenHeadless or NewFile to Close.
// Concurrency: methods that read may be called by several goroutines at once, also while a recorder appends to the
// file: a File sees the length that the file had when it was opened. Watch comes before them.
// Errors: *DamageError and *TooNewError say what is wrong with the file; others are the system's. Iterators yield
// damage as an error and continue behind it.
type File struct {
	Name    string
	header  Header
	Session string
	Index   uint64 // number in the ring
	Size    int64
	r       io.ReaderAt
	c       io.Closer
	x       *Index // nil: it was not closed, or is older than indexes
	noIndex string // why an index that is whole is not taken
}

// Open opens a single ring file. Errors: *DamageError, *TooNewError, I/O errors.
func Open(path string) (*File, error) { return OpenIn(vfs.OS, path) }

// OpenIn is OpenFile in any file system.
func OpenIn(fs vfs.FS, path string) (*File, error) {
	f, err := fs.OpenRead(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Info()
	if err != nil {
		f.Close()
		return nil, err
	}
	out, err := NewFile(path, f, vfs.Written(f, st.Size))
	if err != nil {
		f.Close()
		return nil, err
	}
	out.c = f
	return out, nil
}

// OpenHeadless opens a file whose header is damaged as one of the recording that like is of (nil: of no session); nil
// if it cannot be opened.
func OpenHeadless(path string, like *File) *File {
	r, err := vfs.OS.OpenRead(path)
	if err != nil {
		return nil
	}
	st, err := r.Info()
	st.Size = vfs.Written(r, st.Size)
	if err != nil || st.Size <= HeaderSize {
		r.Close()
		return nil
	}
	h := Header{Session: strings.Repeat("0", 32)}
	if like != nil {
		h = like.header
	}
	h.Number = Number(path)
	return &File{Name: path, header: h, Index: h.Number, Session: h.Session, Size: st.Size, r: r, c: r}
}

// Renumber gives a file without a header a number.
func (f *File) Renumber(n uint64) { f.Index, f.header.Number = n, n }

func NewFile(name string, r io.ReaderAt, size int64) (*File, error) {
	b := make([]byte, min(size, HeaderSize))
	if _, err := r.ReadAt(b, 0); err != nil && err != io.EOF {
		return nil, err
	}
	h, err := decodeHeader(name, b)
	if err != nil {
		return nil, err
	}
	f := &File{Name: name, header: h, Index: h.Number, Session: h.Session, Size: size, r: r}
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
		return Window{f.x.Info, len(f.x.Frames), true}
	}
	x := Index{}
	for fr, err := range f.Headers() {
		if err == nil {
			x.Add(fr)
		}
	}
	return Window{x.Info, len(x.Frames), false}
}

// sound says whether what is stored for fr is what was written.
func (f *File) sound(fr Frame) bool {
	sum, at, left := uint32(0), fr.Offset+FrameSize, int64(fr.Stored)
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

// ReadAt reads the bytes of the file.
func (f *File) ReadAt(b []byte, at int64) (int, error) { return f.r.ReadAt(b, at) }

// Watch has report called with the bytes of each read. It is called once, before anything is read.
func (f *File) Watch(report func(bytes int)) { f.r = watched{f.r, report} }

type watched struct {
	r      io.ReaderAt
	report func(int)
}

func (w watched) ReadAt(b []byte, at int64) (int, error) {
	n, err := w.r.ReadAt(b, at)
	w.report(n)
	return n, err
}

// Sealed says that the file has an index.
func (f *File) Sealed() bool { return f.x != nil }

// Unsealed says that the file has no index although its version has them: it was not sealed.
func (f *File) Unsealed() bool { return f.x == nil && f.header.Version >= indexVersion }

// PID is the process that was recorded, as the recorder saw it.
func (f *File) PID() uint32 { return f.header.PID }

// NSPID is the process as it saw itself.
func (f *File) NSPID() uint32 { return f.header.NSPID }

// Created is when the file was made, Unix ns.
func (f *File) Created() uint64 { return f.header.Created }

// Resumable says that a recorder may continue with the file: it is of the newest version, and its name has its number.
func (f *File) Resumable() bool { return f.header.Version == formatVersion && f.Placed() }

// CheckIndex compares the index with x, made of all frames that are there: a *DamageError if they disagree.
func (f *File) CheckIndex(x *Index) error {
	if why := f.x.disagrees(x); why != "" {
		return Corrupt(f.Name, f.x.at, "the index is not that of this file: "+why)
	}
	return nil
}

// Close closes the file.
func (f *File) Close() error {
	if f.c != nil {
		return f.c.Close()
	}
	return nil
}

// Listing says how much of a listing the file holds, from its index or, if it has none, from the headers of its frames.
func (f *File) Listing() Listing {
	x := f.x
	if x == nil {
		x = &Index{}
		for fr, err := range f.Headers() {
			if err == nil {
				x.Add(fr)
			}
		}
	}
	l, _ := x.Listing()
	return l
}
