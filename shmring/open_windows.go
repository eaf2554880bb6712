package shmring

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/windows"
)

// identity of a ring on Windows: nothing but whether its file goes with it.
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

// Open opens the ring at a path. The owner is not checked: the folder's own access list says who may make rings in it.
// Errors: ErrNotReady, *NotRingError, *TooNewError, I/O errors.
func Open(path string, opt Options) (*Ring, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, &NotRingError{path, "not a regular file"}
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	// Others may delete the file: a probe that ends its recording, a sweep. No reparse point is followed.
	h, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil, windows.OPEN_EXISTING,
		windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := &osFile{File: os.NewFile(uintptr(h), path)}
	r, err := newRing(path, f, opt)
	if err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

// OpenIn is Open: Windows has no mount namespaces.
func OpenIn(pid int, path string, opt Options) (*Ring, error) { return Open(path, opt) }

// OpenFD is for Linux.
func OpenFD(pid, fd int, opt Options) (*Ring, error) {
	return nil, fmt.Errorf("shmring: descriptor of another process: %w", errors.ErrUnsupported)
}

// OpenOf is for Linux.
func OpenOf(pid int, opt Options) (*Ring, error) { return nil, errors.ErrUnsupported }

// A ring on Windows never grows: nothing takes over.
func (r *Ring) successor() (*Ring, error)     { return nil, nil }
func (r *Ring) rename(identity) (bool, error) { return false, errors.ErrUnsupported }
func short(error) bool                        { return false }

// Unlink has the ring's file removed by Close: Windows removes no file that is open. One that its JVM has mapped
// still stays; its magic is taken away, so that nobody takes it for a ring, and it goes as an unfinished one when its
// JVM has ended.
func (r *Ring) Unlink() error {
	f, ok := r.f.(*osFile)
	if !ok {
		return nil
	}
	f.remove.Store(true)
	_, err := f.WriteAt(make([]byte, len(Magic)), OffMagic)
	return err
}

type osFile struct {
	*os.File
	remove atomic.Bool
}

func (f *osFile) Close() error {
	err := f.File.Close()
	if f.remove.Load() {
		os.Remove(f.Name())
	}
	return err
}

func (f *osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// Lock locks one byte far behind the end: locks of Windows bind readers and writers of what they cover. It goes with
// the handle.
func (f *osFile) Lock() (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{OffsetHigh: lockHigh})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

const lockHigh = 1 << 30

// process says whether the producer is there: a process of its pid that was created when the header says.
func (r *Ring) process(s Status, silent bool) Life {
	pid := r.opt.HostPID
	if pid == 0 {
		pid = int(s.PID)
	}
	if ticks, ok := StartTicks(pid); !ok || ticks != 0 && ticks != s.StartTicks {
		return Gone
	}
	return Alive
}

// FindProcess says whether the process pid that started at ticks is there; Windows has one namespace of pids.
func FindProcess(pid uint32, ticks, _ uint64) (hostPID int, ok bool) {
	t, ok := StartTicks(int(pid))
	return int(pid), ok && (t == 0 || t == ticks)
}

// StartTicks gives when a process was created, in 100 ns since 1601, 0 if we may not ask. false: there is none, or it
// has ended.
func StartTicks(pid int) (uint64, bool) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid))
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		return 0, true
	}
	if err != nil {
		return 0, false
	}
	defer windows.CloseHandle(h)
	// its handle is a handle of what is over
	if ev, err := windows.WaitForSingleObject(h, 0); err == nil && ev == windows.WAIT_OBJECT_0 {
		return 0, false
	}
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &created, &exited, &kernel, &user) != nil {
		return 0, true
	}
	return uint64(created.HighDateTime)<<32 | uint64(created.LowDateTime), true
}

var (
	kernel32    = windows.NewLazySystemDLL("kernel32.dll")
	procCounter = kernel32.NewProc("QueryPerformanceCounter")
	procFreq    = kernel32.NewProc("QueryPerformanceFrequency")
	frequency   = func() (f uint64) { procFreq.Call(uintptr(unsafe.Pointer(&f))); return max(f, 1) }()
)

// Monotonic gives the performance counter in ns, the same for all processes: the clock of heartbeats.
func Monotonic() uint64 {
	var n uint64
	procCounter.Call(uintptr(unsafe.Pointer(&n)))
	return n/frequency*1e9 + n%frequency*1e9/frequency
}

// inherit: no ring grows here.
func inherit(*os.File, string) bool { return false }
