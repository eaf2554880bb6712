package room

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// file is a mapping without a name.
type file struct{ f *os.File }

// memoryFiles are file systems whose files are in memory themselves.
var memoryFiles = map[int64]bool{unix.TMPFS_MAGIC: true, unix.RAMFS_MAGIC: true}

func newMapping(dir string, bytes int64) (mapping, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return nil, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if memoryFiles[int64(s.Type)] {
		return nil, ErrUnsupported
	}
	f, err := os.CreateTemp(dir, "room-")
	if err != nil {
		return nil, err
	}
	err = os.Remove(f.Name())
	if err == nil {
		// A page that finds no space later would end the process (SIGBUS).
		err = unix.Fallocate(int(f.Fd()), 0, 0, bytes)
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
			err = ErrUnsupported
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &file{f}, nil
}

func (f *file) mapAt(at, n int64) ([]byte, error) {
	return unix.Mmap(int(f.f.Fd()), at, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func (f *file) unmap(b []byte, at int64) error {
	n := int64(len(b))
	return errors.Join(unix.Munmap(b),
		unix.Fallocate(int(f.f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, n))
}

func (f *file) close() error { return f.f.Close() }
