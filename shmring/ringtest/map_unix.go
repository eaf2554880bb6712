//go:build unix

package ringtest

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapping is a file that is mapped, so that its maker counts as alive while it is silent, and written to by pwrite
// all the same.
type mapping struct {
	*os.File
	b []byte
}

func mapped(f *os.File, size int) (file, error) {
	b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &mapping{f, b}, nil
}

func (m *mapping) Close() error {
	if m.b != nil {
		unix.Munmap(m.b)
		m.b = nil
	}
	return m.File.Close()
}
