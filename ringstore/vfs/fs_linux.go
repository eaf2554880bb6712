package vfs

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"
)

// Allocate keeps the length: a reader never sees bytes that were not written.
func (f osFile) Allocate(at, n int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, at, n)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL):
			return ErrUnsupported
		}
		return err
	}
}

// NextData gives where the next bytes that were written begin, at or behind at: a hole has none, and reads as zeros. It
// is math.MaxInt64 if there are none, and at if the file system does not tell.
func (f osFile) NextData(at int64) int64 {
	next, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return math.MaxInt64
	case err != nil:
		return at
	}
	return next
}

// DataEnd gives the end of the last bytes that were written of a file of this size, as far as the file system tells.
func (f osFile) DataEnd(size int64) (end int64) {
	for at := int64(0); at < size; at = end {
		from := f.NextData(at)
		if from >= size {
			return end
		}
		hole, err := unix.Seek(int(f.Fd()), from, unix.SEEK_HOLE)
		if err != nil || hole <= at {
			return size
		}
		end = hole
	}
	return end
}

func (osFS) Free(path string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return -1, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
