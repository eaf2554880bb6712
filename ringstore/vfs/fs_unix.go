//go:build unix

package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFile opens regular files only: to open a fifo would wait for a writer, and a device may do anything. To write, it
// follows no symbolic link at the end of path: root may record into a folder of another user, who may have put one
// there.
func openFile(path string, flag int, mode os.FileMode) (*os.File, error) {
	regular := func(st os.FileInfo, err error) error {
		if err == nil && !st.Mode().IsRegular() {
			return &os.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
		}
		return nil // opening it reports any other fault
	}
	look := os.Stat
	if flag&os.O_RDWR != 0 {
		look, flag = os.Lstat, flag|unix.O_NOFOLLOW
	}
	if err := regular(look(path)); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, flag|unix.O_NONBLOCK|unix.O_NOCTTY, mode)
	if err != nil {
		return nil, err
	}
	if err := regular(f.Stat()); err != nil { // it was put there in between
		f.Close()
		return nil, err
	}
	return f, nil
}

func describe(_ string, st os.FileInfo) Info {
	i := Info{Name: st.Name(), Dir: st.IsDir(), Size: st.Size(), Links: 1}
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		i.Blocks = int64(s.Blocks) * 512
		i.ID = FileID{uint64(s.Dev), uint64(s.Ino)}
		i.Links = int(s.Nlink)
	}
	return i
}

// Info is asked for after each frame: it makes no garbage.
func (f osFile) Info() (Info, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Info{}, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return Info{Name: filepath.Base(f.Name()), Dir: st.Mode&unix.S_IFMT == unix.S_IFDIR, Size: st.Size,
		Blocks: int64(st.Blocks) * 512,
		ID:     FileID{uint64(st.Dev), uint64(st.Ino)}, Links: int(st.Nlink)}, nil
}

// TryLock uses flock: it belongs to the open file, so it ends with the process that holds it, whatever becomes of it.
func (f osFile) TryLock(exclusive bool) (bool, error) {
	how := unix.LOCK_SH | unix.LOCK_NB
	if exclusive {
		how = unix.LOCK_EX | unix.LOCK_NB
	}
	for {
		err := unix.Flock(int(f.Fd()), how)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		}
		return false, err
	}
}

func (osFS) SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) { // a file system whose folders cannot be synced
		return nil
	}
	return err
}

// NoSpace says that an error means a full disk or quota.
func NoSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
