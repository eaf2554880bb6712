package ringstore

import "os"

// ringFile is what the writing side needs of an open file.
type ringFile interface {
	WriteAt(b []byte, at int64) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
	// Blocks is what the file occupies, bytes; 0 where the system does not tell.
	Blocks() int64
}

// fsys is the seam at which tests count what is occupied and let operations fail. Its files are created, appended to, cut and removed; nothing
// else happens to them.
type fsys interface {
	Create(path string) (ringFile, error) // must not exist
	Open(path string) (ringFile, error)
	Remove(path string) error
}

type osFS struct{}

type osFile struct{ *os.File }

func (osFS) Create(path string) (ringFile, error) {
	return wrap(os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600))
}

func (osFS) Open(path string) (ringFile, error) { return wrap(os.OpenFile(path, os.O_RDWR, 0)) }

func (osFS) Remove(path string) error { return os.Remove(path) }

func wrap(f *os.File, err error) (ringFile, error) {
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}
