package storetest

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/heapcam/heapcam/ringstore"
)

type file struct {
	m      *MemFS
	i      *inode
	p      string
	write  bool
	closed bool
	lock   byte
}

func (f *file) ReadAt(b []byte, at int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.op("read", f.p); err != nil {
		return 0, err
	}
	if at >= int64(len(f.i.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.i.data[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(b []byte, at int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed || !f.write {
		return 0, os.ErrClosed
	}
	err := f.m.op("write", f.p)
	if err != nil {
		b = b[:len(b)/2]
	}
	if at > int64(len(f.i.data)) {
		return 0, fmt.Errorf("%s: a hole is written at %d behind %d", f.p, at, len(f.i.data))
	}
	if grow := at + int64(len(b)) - max(int64(len(f.i.data)), f.i.ahead); grow > 0 && f.m.Capacity > 0 {
		left := f.m.Capacity - f.m.Foreign - f.m.occupied()
		if (at+int64(len(b))+Block-1)/Block*Block-f.i.blocks() > left {
			b = b[:max(int64(len(b))-grow, 0)]
			if err == nil {
				err = &os.PathError{Op: "write", Path: f.p, Err: syscall.ENOSPC}
			}
		}
	}
	if end := at + int64(len(b)); end > int64(len(f.i.data)) {
		f.i.data = append(f.i.data, make([]byte, end-int64(len(f.i.data)))...)
	}
	copy(f.i.data[at:], b)
	f.m.after("write")
	return len(b), err
}

func (f *file) Truncate(n int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.op("truncate", f.p); err != nil {
		return err
	}
	if n > int64(len(f.i.data)) {
		return fmt.Errorf("%s: made longer by truncation: %d, was %d", f.p, n, len(f.i.data))
	}
	f.i.data, f.i.ahead = f.i.data[:n], 0
	if int64(len(f.i.synced)) > n {
		f.i.synced = f.i.synced[:n]
	}
	return nil
}

func (f *file) Allocate(at, n int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.op("allocate", f.p); err != nil {
		return err
	}
	if f.m.Capacity > 0 && (at+n+Block-1)/Block*Block-f.i.blocks() > f.m.Capacity-f.m.Foreign-f.m.occupied() {
		return syscall.ENOSPC
	}
	f.i.ahead = max(f.i.ahead, at+n)
	f.m.after("allocate")
	return nil
}

func (f *file) TryLock(exclusive bool) (bool, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if exclusive {
		if f.i.locked || f.i.shared > 0 {
			return false, nil
		}
		f.i.locked, f.lock = true, 'x'
		return true, nil
	}
	if f.i.locked {
		return false, nil
	}
	f.i.shared++
	f.lock = 's'
	return true, nil
}

func (f *file) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.op("sync", f.p); err != nil {
		return err
	}
	f.i.synced = append(f.i.synced[:0], f.i.data...)
	return nil
}

func (f *file) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return os.ErrClosed
	}
	f.closed = true
	f.i.open = max(f.i.open-1, 0)
	switch f.lock {
	case 'x':
		f.i.locked = false
	case 's':
		f.i.shared = max(f.i.shared-1, 0)
	}
	return nil
}

func (f *file) Info() (ringstore.Info, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return f.m.info(f.p, f.i), nil
}
