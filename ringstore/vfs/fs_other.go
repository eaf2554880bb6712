//go:build !unix && !windows

package vfs

import "os"

func openFile(path string, flag int, mode os.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag, mode)
}

func describe(_ string, st os.FileInfo) Info {
	return Info{Name: st.Name(), Dir: st.IsDir(), Size: st.Size(), Links: 1}
}

func (f osFile) Info() (Info, error) {
	st, err := f.Stat()
	if err != nil {
		return Info{}, err
	}
	return describe("", st), nil
}

func (f osFile) TryLock(bool) (bool, error) { return false, ErrUnsupported }

func (osFS) SyncDir(string) error { return nil }

func NoSpace(error) bool { return false }
