//go:build !unix

package ringstore

import "os"

func describe(st os.FileInfo) Info {
	return Info{Name: st.Name(), Dir: st.IsDir(), Size: st.Size(), Links: 1}
}

func (f osFile) Info() (Info, error) {
	st, err := f.Stat()
	if err != nil {
		return Info{}, err
	}
	return describe(st), nil
}

func (f osFile) TryLock(bool) (bool, error) { return false, ErrUnsupported }

func (osFS) SyncDir(string) error { return nil }

func noSpace(error) bool { return false }
