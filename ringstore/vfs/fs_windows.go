package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/windows"
)

// shareAll lets others read, write, delete and rename a file that is open here.
const shareAll = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE

// openFile opens with leave to delete and rename for others: a ring evicts its oldest file while a reader has it open.
func openFile(path string, flag int, _ os.FileMode) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	access, how := uint32(windows.GENERIC_READ), uint32(windows.OPEN_EXISTING)
	if flag&os.O_RDWR != 0 {
		access |= windows.GENERIC_WRITE
	}
	if flag&os.O_CREATE != 0 { // with O_EXCL: the store never overwrites
		how = windows.CREATE_NEW
	}
	h, err := windows.CreateFile(name, access, shareAll, nil, how,
		windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

// describe asks for what a listing does not have: the file's number and links. What cannot be opened has neither.
func describe(path string, st os.FileInfo) Info {
	i := Info{Name: st.Name(), Dir: st.IsDir(), Size: st.Size(), Links: 1}
	if i.Dir {
		return i
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return i
	}
	h, err := windows.CreateFile(name, 0, shareAll,
		nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		return i
	}
	defer windows.CloseHandle(h)
	var d windows.ByHandleFileInformation
	if windows.GetFileInformationByHandle(h, &d) == nil {
		fill(&i, &d)
	}
	return i
}

func fill(i *Info, d *windows.ByHandleFileInformation) {
	i.Dir = d.FileAttributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0
	i.Size = int64(d.FileSizeHigh)<<32 | int64(d.FileSizeLow)
	i.ID = FileID{uint64(d.VolumeSerialNumber), uint64(d.FileIndexHigh)<<32 | uint64(d.FileIndexLow)}
	i.Links = int(d.NumberOfLinks)
}

func (f osFile) Info() (Info, error) {
	i := Info{Name: filepath.Base(f.Name()), Links: 1}
	var d windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &d); err != nil {
		return Info{}, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	fill(&i, &d)
	return i, nil
}

// lockHigh places the one byte that is locked far behind every end: locks of Windows bind readers and writers of what
// they cover.
const lockHigh = 1 << 30

// TryLock locks for the handle, so it ends with the process that holds it.
func (f osFile) TryLock(exclusive bool) (bool, error) {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: lockHigh})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// Allocate is left out: NTFS allocates as files grow, and a length set ahead would be read as trace.
func (f osFile) Allocate(at, n int64) error { return ErrUnsupported }

// SyncDir has nothing to do: NTFS journals names.
func (osFS) SyncDir(string) error { return nil }

func (osFS) Free(path string) (int64, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return -1, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return -1, err
	}
	return int64(min(free, 1<<62)), nil
}

// NoSpace says that an error means a full disk or quota.
func NoSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED) || errors.Is(err, syscall.ENOSPC) // Go's own name for it
}
