package folder

import (
	"crypto/rand"
	"encoding/hex"
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
	if lock == nil {
		// The lock is made before the links: one that is there now belongs to a pull that has just begun.
		again, err := fs.OpenRead(filepath.Join(dir, LockName))
		if err == nil {
			again.Close()
		}
		if len(links) == 0 || !errors.Is(err, os.ErrNotExist) {
			return
		}
	}
	for _, l := range links {
		if l.Name != LockName {
			fs.Remove(filepath.Join(dir, l.Name))
		}
	}
	fs.Remove(filepath.Join(dir, LockName))
	fs.RemoveDir(dir)
}

// newPullTries bounds how often NewPull begins again.
const newPullTries = 8

// NewPull makes a folder for a pull's links below dir, and the lock that says that the pull lives. ClearPulls of
// another pull may come between the two, and take the folder for one that was left: then it begins again. "": there can
// be none.
func NewPull(fs vfs.FS, dir string) (own string, lock vfs.File) {
	for range newPullTries {
		var id [8]byte
		rand.Read(id[:])
		own = filepath.Join(dir, hex.EncodeToString(id[:]))
		if fs.Mkdir(own) != nil {
			return "", nil
		}
		lock, err := fs.Create(filepath.Join(own, LockName))
		if err != nil {
			fs.RemoveDir(own)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			return "", nil
		}
		ok, err := lock.TryLock(true)
		if st, _ := lock.Info(); err != nil || ok && st.Links > 0 { // without locks nothing is taken for left
			return own, lock
		}
		lock.Close()
	}
	return "", nil
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
