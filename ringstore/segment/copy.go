package segment

import (
	"errors"
	"io"

	"github.com/heapcam/heapcam/ringstore/vfs"
)

// CopySealed writes the whole frames that f has now to the new file to, as a sealed segment, synced. One of an older
// version stays without index. Errors: I/O errors; then what was written is left to the caller.
func CopySealed(fs vfs.FS, f *File, to string) error {
	out, err := fs.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	x, end := Index{}, int64(HeaderSize)
	for fr, err := range f.Headers() {
		if err == nil && len(x.Frames) < MaxFrames {
			x.Add(fr)
			end = fr.End()
		}
	}
	b := make([]byte, 1<<20)
	for at := int64(0); at < end; {
		k, err := f.r.ReadAt(b[:min(end-at, int64(len(b)))], at)
		if k == 0 {
			return errors.Join(err, io.ErrUnexpectedEOF)
		}
		if err := WriteWhole(out, b[:k], at); err != nil {
			return err
		}
		at += int64(k)
	}
	if f.header.Version == formatVersion && contiguous(x.Frames, end) { // an older file cannot be sealed
		if err := WriteWhole(out, x.encode(end), end); err != nil {
			return err
		}
	}
	return out.Sync()
}

// contiguous says that frames follow each other from the file header to end.
func contiguous(fs []Frame, end int64) bool {
	at := int64(HeaderSize)
	for _, f := range fs {
		if f.Offset != at {
			return false
		}
		at = f.End()
	}
	return at == end
}
