package faultfs

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFaults(t *testing.T) {
	m := New(t)
	f, err := os.OpenFile(filepath.Join(m.Dir, "a"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	big := make([]byte, 1<<20)
	ops := map[Op]func() error{
		Create:   func() error { return os.WriteFile(filepath.Join(m.Dir, "b"), nil, 0o600) },
		Write:    func() error { _, err := f.WriteAt(big, 0); return err },
		Fsync:    f.Sync,
		Truncate: func() error { return f.Truncate(100) },
		Allocate: func() error { return syscall.Fallocate(int(f.Fd()), 1, 0, 1<<16) },
		Link:     func() error { return os.Link(filepath.Join(m.Dir, "a"), filepath.Join(m.Dir, "c")) },
		Rename:   func() error { return os.Rename(filepath.Join(m.Dir, "a"), filepath.Join(m.Dir, "d")) },
		Unlink:   func() error { return os.Remove(filepath.Join(m.Dir, "c")) },
		Mkdir:    func() error { return os.Mkdir(filepath.Join(m.Dir, "e"), 0o700) },
	}
	if err := os.WriteFile(filepath.Join(m.Backing, "read"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	ops[Read] = func() error { _, err := os.ReadFile(filepath.Join(m.Dir, "read")); return err }
	for _, op := range []Op{Read, Create, Write, Fsync, Truncate, Allocate, Link, Rename, Unlink, Mkdir} {
		for _, e := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
			m.Fail(func(o Op, _ string) syscall.Errno {
				if o == op {
					return e
				}
				return 0
			})
			if err := ops[op](); !errors.Is(err, e) {
				t.Errorf("%s: %v, want %v", op, err, e)
			}
		}
		m.Fail(nil)
		if err := ops[op](); err != nil {
			t.Errorf("%s: %v", op, err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(m.Backing, "d")); err != nil || len(b) != 100 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
