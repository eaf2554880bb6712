package ringstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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
