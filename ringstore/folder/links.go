package folder

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/heapcam/heapcam/ringstore/vfs"
)

// A pull makes hard links of the files that it wants below DIR/.pull/ID/ and reads one at a time under a shared lock.
// So what it holds has a name and counts, the ring can take a link back that is not being read yet, and a link that
// is read counts until its lock is gone:
//
//	pull:  link all - lock one - is it still there? - read - unlock - unlink - next
//	ring:  unlink own name - lock the pull's exclusively? yes: unlink it. no: count it as held, try again
//
// A lock goes with its process, so a pull that was killed holds nothing: its folder is cleared by the next process that
// finds its lock file free.
const (
	PullsName = ".pull"
	LockName  = "lock"
)

// ClearPulls removes the folders of pulls that are no longer there.
func ClearPulls(fs vfs.FS, dir string) {
	pulls, err := fs.ReadDir(dir)
	if err != nil {
		return
	}
	for _, p := range pulls {
		clearPull(fs, filepath.Join(dir, p.Name))
	}
}

func clearPull(fs vfs.FS, dir string) {
	lock, err := fs.OpenRead(filepath.Join(dir, LockName))
	if err == nil {
		defer lock.Close()
		if ok, err := lock.TryLock(true); err != nil || !ok {
			return // alive
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return
	}
	links, err := fs.ReadDir(dir)
	if err != nil {
		return
	}
	if lock == nil && len(links) == 0 { // just being made
		return
	}
	for _, l := range links {
		if l.Name != LockName {
			fs.Remove(filepath.Join(dir, l.Name))
		}
	}
	fs.Remove(filepath.Join(dir, LockName))
	fs.RemoveDir(dir)
}

// TakeLink removes a pull's link unless it is being read; true if nothing is left of it.
func TakeLink(fs vfs.FS, link string) bool {
	f, err := fs.OpenRead(link)
	if errors.Is(err, os.ErrNotExist) {
		return true
	}
	if err != nil {
		return fs.Remove(link) == nil
	}
	defer f.Close()
	if ok, err := f.TryLock(true); err == nil && !ok {
		return false
	}
	err = fs.Remove(link)
	return err == nil || errors.Is(err, os.ErrNotExist)
}
