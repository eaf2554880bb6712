//go:build !linux && !windows

package shmring

import (
	"errors"
	"fmt"
	"os"
	"time"
)

type identity struct{}

func (id *identity) close()          {}
func (id *identity) become(identity) {}

// Remove removes a ring's file by its path, and says whether there was one.
func Remove(path string) (bool, error) {
	err := os.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Open opens the ring at a path. On this system owner and producer are not checked, and no lock keeps a second agent
// away (generations do, after the fact). Errors: ErrNotReady, *NotRingError, *TooNewError, I/O errors.
func Open(path string, opt Options) (*Ring, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, &NotRingError{path, "not a regular file"}
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	r, err := newRing(path, &osFile{f}, opt)
	if err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

// OpenIn is for Linux: other systems have no mount namespaces.
func OpenIn(pid int, path string, opt Options) (*Ring, error) { return Open(path, opt) }

// OpenFD is for Linux.
func OpenFD(pid, fd int, opt Options) (*Ring, error) {
	return nil, fmt.Errorf("shmring: descriptor of another process: %w", errors.ErrUnsupported)
}

// No ring grows here: nothing takes over.
func (r *Ring) successor() (*Ring, error)     { return nil, nil }
func (r *Ring) rename(identity) (bool, error) { return false, errors.ErrUnsupported }
func short(error) bool                        { return false }

// Unlink removes the ring's file.
func (r *Ring) Unlink() error {
	if err := os.Remove(r.path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// process says nothing here: state and heartbeat have to do.
func (r *Ring) process(s Status, silent bool) Life { return Alive }

type osFile struct{ *os.File }

func (f *osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func (f *osFile) Lock() (bool, error) { return true, nil }

var start = time.Now()

// Monotonic gives a monotonic clock in ns. It is not comparable between processes on this system.
func Monotonic() uint64 { return uint64(time.Since(start)) + 1 }

// inherit: no ring grows here.
func inherit(*os.File, string) bool { return false }
