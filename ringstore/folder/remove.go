package folder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/heapcam/heapcam/ringstore/vfs"
)

// ErrInUse says that a ring is being written to or pulled.
var ErrInUse = errors.New("the ring is in use")

// Remove removes the ring of a recorder that has ended, newest file last: what a kill leaves of it is a recording
// still. Only what a recorder makes is removed, and of ring files this recording's: others stay, and the folder with
// them (*ForeignError, when all else is gone). Errors: ErrInUse, I/O errors.
func Remove(dir string) error {
	fs := vfs.OS
	ClearPulls(fs, filepath.Join(dir, PullsName))
	if pulls, err := fs.ReadDir(filepath.Join(dir, PullsName)); err == nil && len(pulls) > 0 {
		return ErrInUse
	}
	d, err := Read(fs, dir)
	if err != nil {
		return err
	}
	names := d.Files
	if len(names) > 0 { // a writer holds a shared lock of its open file
		f, err := fs.OpenRead(filepath.Join(dir, names[len(names)-1].Name))
		if err != nil {
			return err
		}
		ok, err := f.TryLock(true)
		defer f.Close()
		if err == nil && !ok {
			return ErrInUse
		}
	}
	// else what stays would be taken for the folder's own
	if len(d.Foreign) > 0 && (!d.Described || len(d.Problems) > 0) {
		b, err := Describe(Identity{Session: d.Session}, nil)
		if err == nil {
			err = fs.WriteFile(filepath.Join(dir, RecordingName), b)
		}
		if err != nil {
			return err
		}
	}
	for _, n := range names {
		if err := fs.Remove(filepath.Join(dir, n.Name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if len(d.Foreign) > 0 {
		return d.Foreign[0]
	}
	all, err := fs.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.Name == RecordingName || strings.HasPrefix(i.Name, RecordingName+".") {
			if err := fs.Remove(filepath.Join(dir, i.Name)); err != nil {
				return err
			}
		}
	}
	fs.RemoveDir(filepath.Join(dir, PullsName))
	return fs.RemoveDir(dir)
}
