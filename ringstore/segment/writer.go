package segment

import (
	"errors"
	"fmt"

	"github.com/heapcam/heapcam/ringstore/vfs"
)

// failuresAllowed is how many writes in a row may fail in one segment until a new one is wanted.
const failuresAllowed = 3

// Sealed is a segment that is no longer written to.
type Sealed struct {
	Path string
	Size int64 // what it occupies, bytes
	// Listing is how much of a listing it holds.
	Listing Listing
	Cut     int64 // length to which a failed write has yet to be cut off; 0: none
}

// Writer is the open segment of a ring: the one file that grows.
//
// Owner: the store that made it, which gives its file to a syncer when it has sealed it.
// Lifetime: from NewWriter or ResumeWriter to Seal or Abandon. Methods that change the file panic after that.
// Concurrency: one goroutine. The file itself may be synced by another one at the same time.
// Errors: those of the file system, unchanged. Each is reported to the fault function first, which may ask the writer
// for its sizes. After an error of Append nothing of the frame counts; what is left of it behind the end is cut off at
// once, before the next Append, at Seal, or (Sealed.Cut) later by the store.
type Writer struct {
	file   vfs.File
	path   string
	size   int64 // behind the last whole frame
	blocks int64 // what the system says that the file occupies
	ahead  int64 // up to where blocks were taken ahead; 0: nowhere
	index  Index
	buf    []byte // of write
	list   Listing
	from   int64 // where the newest listing begins
	dirty  bool  // behind size there may be the rest of a write that failed
	failed int   // writes that failed in a row
	fault  func(error)
}

var errShort = errors.New("short write")

// WriteWhole writes all of b at offset at.
func WriteWhole(f vfs.File, b []byte, at int64) error {
	n, err := f.WriteAt(b, at)
	if err == nil && n < len(b) {
		err = errShort
	}
	return err
}

// NewWriter continues f, a file that holds exactly all: a file header and a first frame. It takes over the memory of
// spare, a sealed writer, unless that is nil. fault hears of each operation that fails.
func NewWriter(f vfs.File, path string, all []byte, spare *Writer, fault func(error)) *Writer {
	w := &Writer{file: f, path: path, fault: fault}
	if spare != nil {
		w.index.Frames = spare.index.Frames[:0]
	}
	_, _ = f.TryLock(false) // says that the ring is in use
	w.count(all[HeaderSize:], HeaderSize, int64(len(all))-HeaderSize)
	w.stat()
	return w
}

// ResumeWriter continues f, a file that was recovered: x are its frames, end is behind the last of them, and nothing
// follows.
func ResumeWriter(f vfs.File, path string, x *Index, end int64, fault func(error)) *Writer {
	_, _ = f.TryLock(false)
	w := &Writer{file: f, path: path, size: end, index: *x, fault: fault}
	w.list, w.from = x.Listing()
	w.stat()
	return w
}

// Append adds a frame that is encoded already: its header, or more of it, and the parts that follow. It does not look
// at any limit. Makes no garbage.
func (w *Writer) Append(head []byte, parts ...[]byte) error {
	size, err := w.write(head, parts)
	if err != nil {
		w.fault(err)
		w.dirty = true // even a write of no bytes promises nothing
		w.failed++
		_ = w.Mend() // or a later call does
		w.stat()
		return err
	}
	w.failed = 0
	w.count(head, w.size, size)
	w.stat()
	return nil
}

// smallPart is the size, bytes, below which a part is copied behind the one before it rather than written by itself.
const smallPart = 16 << 10

// write writes head and parts at the end, from front to back: what a death in between leaves is torn.
func (w *Writer) write(head []byte, parts [][]byte) (size int64, err error) {
	buf, at := append(w.buf[:0], head...), w.size
	for i := 0; i <= len(parts); i++ {
		var part []byte
		if i < len(parts) {
			if part = parts[i]; len(part) < smallPart && len(buf) < 4*smallPart {
				buf = append(buf, part...)
				continue
			}
		}
		for _, b := range [...][]byte{buf, part} {
			if len(b) == 0 {
				continue
			}
			if err := WriteWhole(w.file, b, at); err != nil {
				return 0, err
			}
			at += int64(len(b))
		}
		buf = buf[:0]
	}
	if w.buf = buf; cap(buf) > 8*smallPart {
		w.buf = nil
	}
	return at - w.size, nil
}

// count takes note of a whole frame of size bytes at offset at, the end. head begins with its header.
func (w *Writer) count(head []byte, at, size int64) {
	if f, err := decodeFrame(w.path, at, head); err == nil { // it was encoded just now
		w.index.Add(f)
		if f.Flags&(FlagListing|FlagComplete) != 0 {
			w.list, w.from = w.index.Listing()
		}
	}
	w.size = at + size
}

func (w *Writer) stat() {
	if i, err := w.file.Info(); err == nil {
		w.blocks = i.Blocks
	}
}

// Allocate takes blocks up to offset to without changing the length. ErrUnsupported is no fault.
func (w *Writer) Allocate(to int64) error {
	err := w.file.Allocate(w.size, to-w.size)
	switch {
	case err == nil:
		w.ahead = to
	case !errors.Is(err, vfs.ErrUnsupported):
		w.fault(err)
	}
	return err
}

// Mend cuts off what a failed write may have left; nothing to do otherwise.
func (w *Writer) Mend() error {
	if !w.dirty {
		return nil
	}
	if err := w.file.Truncate(w.size); err != nil {
		w.fault(err)
		return fmt.Errorf("cut off a failed write: %w", err)
	}
	w.dirty, w.ahead = false, 0
	return nil
}

// Trim gives back what was taken ahead.
func (w *Writer) Trim() error {
	if w.ahead == 0 || w.dirty {
		return nil
	}
	if err := w.file.Truncate(w.size); err != nil {
		w.fault(err)
		return err
	}
	w.ahead = 0
	w.stat()
	return nil
}

// Seal closes the segment with its index. If that cannot be written the segment stays without, and what is torn is cut
// off later (Sealed.Cut). The caller then syncs and closes File.
func (w *Writer) Seal() Sealed {
	out := Sealed{Path: w.path, Listing: w.list}
	size := w.size
	if w.Mend() == nil {
		b := w.index.encode(w.size)
		if err := WriteWhole(w.file, b, w.size); err == nil {
			size += int64(len(b))
		} else {
			w.fault(err)
			w.dirty = true
		}
		if w.dirty || w.ahead > 0 {
			if err := w.file.Truncate(size); err != nil {
				w.fault(err)
			} else {
				w.dirty = false
			}
		}
	}
	if w.dirty {
		out.Cut = size
	}
	w.stat()
	out.Size = max(vfs.Occupied(size), w.blocks)
	return out
}

// Abandon closes the file as a dying process does: no index, no sync.
func (w *Writer) Abandon() { w.file.Close() }

// File is the file, to be synced.
func (w *Writer) File() vfs.File { return w.file }

// Size is the length up to the last whole frame, bytes.
func (w *Writer) Size() int64 { return w.size }

// Frames is how many frames there are.
func (w *Writer) Frames() int { return len(w.index.Frames) }

// Path is where the file is.
func (w *Writer) Path() string { return w.path }

// Listing says how much of a listing there is, and how many bytes have been written since the newest one began.
func (w *Writer) Listing() (l Listing, since int64) { return w.list, w.size - w.from }

// Ahead is up to where blocks were taken ahead; 0: nowhere.
func (w *Writer) Ahead() int64 { return w.ahead }

// Distrusted says that so many writes in a row have failed that a new segment is wanted.
func (w *Writer) Distrusted() bool { return w.failed >= failuresAllowed }

// Distrust makes it so until a write succeeds.
func (w *Writer) Distrust() { w.failed = failuresAllowed }

// Occupies is what the segment takes on disk and needs to be sealed: the system may take more than its length
// (preallocation, extent blocks).
func (w *Writer) Occupies() int64 { return max(vfs.Occupied(w.size+IndexSize(w.Frames())), w.blocks) }

// Needs is the length that the segment has when a frame of n more bytes was appended and it was sealed.
func (w *Writer) Needs(n int64) int64 { return w.size + n + IndexSize(w.Frames()+1) }
