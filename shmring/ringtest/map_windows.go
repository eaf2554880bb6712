package ringtest

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/windows"
)

// mapping is a file that is read and written through a view of it.
type mapping struct {
	f    *os.File
	view uintptr
	b    []byte
}

func mapped(f *os.File, size int) (file, error) {
	h, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READWRITE, 0, uint32(size), nil)
	if err != nil {
		return nil, err
	}
	defer windows.CloseHandle(h) // the view keeps it
	view, err := windows.MapViewOfFile(h, windows.FILE_MAP_READ|windows.FILE_MAP_WRITE, 0, 0, uintptr(size))
	if err != nil {
		return nil, err
	}
	return &mapping{f, view, unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&view))), size)}, nil
}

func (m *mapping) ReadAt(b []byte, at int64) (int, error) {
	if at > int64(len(m.b)) {
		return 0, io.EOF
	}
	return copy(b, m.b[at:]), nil
}

// WriteAt stores a word as one, behind all that was written before it: that is how the probe moves head.
func (m *mapping) WriteAt(b []byte, at int64) (int, error) {
	if at+int64(len(b)) > int64(len(m.b)) {
		return 0, io.ErrShortWrite
	}
	if len(b) == 8 && at%8 == 0 {
		atomic.StoreUint64((*uint64)(unsafe.Pointer(&m.b[at])), *(*uint64)(unsafe.Pointer(&b[0])))
		return 8, nil
	}
	return copy(m.b[at:], b), nil
}

func (m *mapping) Truncate(int64) error { return errors.ErrUnsupported } // Windows cuts nothing that is mapped

func (m *mapping) Close() error { return errors.Join(windows.UnmapViewOfFile(m.view), m.f.Close()) }
