package ringstore

import (
	"errors"
	"os"

	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

// checkPlace looks whether the open file is still what its path names, in its full length. If somebody removed, moved
// or cut it, what is written to it would be lost: the store gives it up, so that a new file is wanted.
func (s *Store) checkPlace() {
	if s.active == nil {
		return
	}
	moved, cut := s.displaced()
	switch {
	case cut:
		s.counts.gone++
		w := s.active
		s.abandon() // without an index: it would lie behind a hole
		s.sealed = append(s.sealed, segment.Sealed{Path: w.Path(), Size: w.Occupies()})
	case moved:
		s.seal() // whoever moved it has a whole file
	default:
		return
	}
	kept := s.sealed[:0]
	for _, f := range s.sealed {
		g, err := s.cfg.FS.OpenRead(f.Path)
		if errors.Is(err, os.ErrNotExist) {
			s.counts.gone++
			continue
		}
		if err == nil {
			g.Close()
		}
		kept = append(kept, f)
	}
	s.sealed = kept
	s.remake()
}

// remake makes the folder again, and recording.json in it with the next sync.
func (s *Store) remake() {
	s.desc.stale = true
	if err := s.cfg.FS.Mkdir(s.cfg.Dir); err != nil {
		s.failed(err)
	}
}

// displaced says whether the open file has no longer its name, and whether it is shorter than what was written.
func (s *Store) displaced() (moved, cut bool) {
	mine, err := s.active.File().Info()
	if err != nil {
		return false, false
	}
	if mine.Links == 0 {
		return true, false
	}
	if mine.Size < s.active.Size() {
		return false, true
	}
	f, err := s.cfg.FS.OpenRead(s.active.Path())
	if err != nil {
		return errors.Is(err, os.ErrNotExist), false
	}
	defer f.Close()
	named, err := f.Info()
	return err == nil && named.ID != (vfs.FileID{}) && mine.ID != (vfs.FileID{}) && named.ID != mine.ID, false
}
