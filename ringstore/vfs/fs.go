package vfs

import (
	"errors"
	"os"
	"path/filepath"
)

// FileID identifies a file whatever its names: device and inode. The zero value means that the system does not say.
type FileID struct{ Dev, Ino uint64 }

// Info is what a store needs to know of a file.
type Info struct {
	Name   string // last part of the path
	Dir    bool
	Size   int64
	Blocks int64 // what it occupies, bytes; 0 where the system does not say
	ID     FileID
	Links  int // names of the file; 1 where the system does not say
}

// Occupies is what counts: the length in whole blocks, or what the system says if that is more (preallocation,
// extents).
func (i Info) Occupies() int64 { return max(Occupied(i.Size), i.Blocks) }

// muchMore is how many times as long as what it occupies a file is that has a hole: no file system compresses a ring
// file so much.
const muchMore = 64

// Holds is how long the file is for all that it can hold: its length, or what it occupies if most of it is a hole.
func (i Info) Holds() int64 {
	if i.Blocks > 0 && i.Size/muchMore > i.Blocks {
		return i.Blocks
	}
	return i.Size
}

// File is an open file.
//
// Owner: who opened it, who must Close it. Lifetime: until Close; then every method fails with os.ErrClosed.
// Concurrency: any method may be called by several goroutines at once; WriteAt and Truncate of the same bytes may not.
// Errors: those of the system, with the path.
type File interface {
	// ReadAt is that of io.ReaderAt.
	ReadAt(b []byte, at int64) (int, error)

	// WriteAt writes b at offset at and returns how many bytes were taken. With an error, and even with fewer bytes
	// than asked and none, what stands behind at is unknown up to at+len(b). It does not keep b.
	WriteAt(b []byte, at int64) (int, error)

	// Truncate cuts the file to size and gives back what was allocated beyond it. It never makes the file longer.
	Truncate(size int64) error

	// Allocate takes blocks for [at, at+n) without changing the length. ErrUnsupported where there is no such thing;
	// the caller does without.
	Allocate(at, n int64) error

	// TryLock takes an advisory lock, shared or exclusive, without waiting. The lock is kept until Close or the end of
	// the process. false: another has it.
	TryLock(exclusive bool) (bool, error)

	// Sync returns when all that was written survives a power loss. After an error the system may have forgotten it:
	// a second Sync without error proves nothing.
	Sync() error

	Close() error

	// Info is asked for after each frame: it makes no garbage.
	Info() (Info, error)
}

// FS is the seam at which tests count what is occupied and let operations fail. Ring files are created, appended to,
// cut, linked and removed; nothing else happens to them.
//
// Owner: none; there is one for the process (OS), or one for a test. Concurrency: any method at any time.
// Errors: those of the system, unchanged: os.ErrNotExist, os.ErrExist, and a full disk (NoSpace) can be recognized.
type FS interface {
	// Create makes a file that must not exist (os.ErrExist), readable and writable. The name is not on the disk before
	// SyncDir.
	Create(path string) (File, error)

	// Open opens a regular file to be read and written, OpenRead one to be read.
	Open(path string) (File, error)
	OpenRead(path string) (File, error)

	// WriteFile replaces a small file as a whole: every reader of path sees the old or the new one, after a power loss
	// too.
	WriteFile(path string, b []byte) error

	// Remove removes a name. The blocks stay as long as the file has another name or is open.
	Remove(path string) error

	// Link gives a file a second name. Errors: os.ErrExist; what the system says where there are no links.
	Link(from, to string) error

	// Mkdir makes a folder with its parents, of this user alone. It is no error if it is there, but if it is a symbolic
	// link.
	Mkdir(path string) error

	// RemoveDir removes an empty folder.
	RemoveDir(path string) error

	// ReadDir lists folders and regular files, sorted by name. What is gone when it is looked at is left out.
	ReadDir(path string) ([]Info, error)

	// SyncDir returns when the names in a folder survive a power loss.
	SyncDir(path string) error

	// Free is what may still be taken on the file system of path, bytes; negative where the system does not say.
	Free(path string) (int64, error)
}

// OS is the system's FS.
var OS FS = osFS{}

// ErrUnsupported says that a file system has no such operation; the store does without.
var ErrUnsupported = errors.ErrUnsupported

var errLink = errors.New("it is a symbolic link, and heapcam writes only into folders of its own")

type osFS struct{}

type osFile struct{ *os.File }

func (osFS) Create(path string) (File, error) {
	return wrap(openFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600))
}

func (osFS) Open(path string) (File, error) { return wrap(openFile(path, os.O_RDWR, 0)) }

func (osFS) OpenRead(path string) (File, error) { return wrap(openFile(path, os.O_RDONLY, 0)) }

func (osFS) Remove(path string) error { return os.Remove(path) }

func (osFS) RemoveDir(path string) error { return os.Remove(path) }

func (osFS) Link(from, to string) error { return os.Link(from, to) }

func (osFS) Mkdir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSymlink != 0 {
		return &os.PathError{Op: "mkdir", Path: path, Err: errLink}
	}
	return nil
}

func (osFS) WriteFile(path string, b []byte) (err error) {
	os.Remove(path + ".new") // what a killed recorder left, or a link that somebody else put there
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		os.Remove(path + ".new")
	}
	return err
}

func (osFS) ReadDir(path string) ([]Info, error) {
	es, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	out := make([]Info, 0, len(es))
	for _, e := range es {
		full := filepath.Join(path, e.Name())
		st, err := os.Lstat(full)
		if err != nil {
			continue // gone meanwhile
		}
		if !st.IsDir() && !st.Mode().IsRegular() {
			continue
		}
		out = append(out, describe(full, st))
	}
	return out, nil
}

func wrap(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}
