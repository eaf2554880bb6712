package ringstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// A pull makes hard links of the files that it wants below DIR/.pull/ID/ and reads one at a time under a shared lock. So what it holds
// has a name and counts, the ring can take a link back that is not being read yet, and a link that is read counts until its lock is gone:
//
//	pull:  link all - lock one - is it still there? - read - unlock - unlink - next
//	ring:  unlink own name - lock the pull's exclusively? yes: unlink it. no: count it as held, try again
//
// A lock goes with its process, so a pull that was killed holds nothing: its folder is cleared by whoever finds its lock file free.
const (
	pullsName = ".pull"
	lockName  = "lock"
)

// takeFromPulls takes f, which the ring has given up, from the pulls that have not begun to read it; those that have keep it held.
func (s *Store) takeFromPulls(f sealed) {
	dir := filepath.Join(s.dir, pullsName)
	pulls, err := s.fs.ReadDir(dir)
	if err != nil {
		return
	}
	held := ""
	for _, p := range pulls {
		link := filepath.Join(dir, p.Name, filepath.Base(f.path))
		if !s.take(link) {
			held = link
		}
	}
	if held != "" {
		s.held = append(s.held, sealed{path: held, size: f.size})
	}
}

// take removes a pull's link unless it is being read; true if nothing is left of it.
func (s *Store) take(link string) bool {
	f, err := s.fs.OpenRead(link)
	if errors.Is(err, os.ErrNotExist) {
		return true
	}
	if err != nil {
		return s.fs.Remove(link) == nil
	}
	defer f.Close()
	if ok, err := f.TryLock(true); err == nil && !ok {
		return false
	}
	err = s.fs.Remove(link)
	return err == nil || errors.Is(err, os.ErrNotExist)
}

// release looks whether what pulls held is free now.
func (s *Store) release() {
	for i := 0; i < len(s.held); {
		if s.take(s.held[i].path) {
			s.held = append(s.held[:i], s.held[i+1:]...)
		} else {
			i++
		}
	}
}

// dropPulls clears what dead pulls left.
func (s *Store) dropPulls() {
	clearPulls(s.fs, filepath.Join(s.dir, pullsName))
	// A link of a living pull whose file the ring no longer has is held.
	dir := filepath.Join(s.dir, pullsName)
	pulls, err := s.fs.ReadDir(dir)
	if err != nil {
		return
	}
	have := map[string]bool{}
	files, err := ringFilesIn(s.fs, s.dir)
	if err != nil {
		return
	}
	for _, f := range files {
		have[f.Name] = true
	}
	seen := map[FileID]bool{}
	for _, p := range pulls {
		links, err := s.fs.ReadDir(filepath.Join(dir, p.Name))
		if err != nil {
			continue
		}
		for _, l := range links {
			if strings.HasSuffix(l.Name, fileSuffix) && !have[l.Name] && (l.ID == FileID{} || !seen[l.ID]) {
				seen[l.ID] = true
				s.held = append(s.held, sealed{path: filepath.Join(dir, p.Name, l.Name), size: l.occupies()})
			}
		}
	}
	s.release()
}

// clearPulls removes the folders of pulls that are no longer there.
func clearPulls(fs FS, dir string) {
	pulls, err := fs.ReadDir(dir)
	if err != nil {
		return
	}
	for _, p := range pulls {
		clearPull(fs, filepath.Join(dir, p.Name))
	}
}

func clearPull(fs FS, dir string) {
	lock, err := fs.OpenRead(filepath.Join(dir, lockName))
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
		if l.Name != lockName {
			fs.Remove(filepath.Join(dir, l.Name))
		}
	}
	fs.Remove(filepath.Join(dir, lockName))
	fs.RemoveDir(dir)
}
