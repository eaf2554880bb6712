package ringstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

// syncer brings to the disk what was written: beside the store if that is on the system's disk, at once otherwise.
//
// Owner: a store, which alone calls its methods. Lifetime: that of the store; Store.Sync waits for all that is under
// way. Concurrency: it starts goroutines of its own; what they share with the store is under mu or atomic. running is
// the store's alone.
// Errors: of finish: the file is synced again by the next Sync; of a sync: returned by Sync or a later SyncSoon.
type syncer struct {
	bg      sync.WaitGroup
	running chan error // of the sync under way, nil: none

	undescribed atomic.Bool // recording.json could not be written

	mu      sync.Mutex
	closing map[string]bool // files that are being closed
	left    []string        // closed files that are not known to be on the disk; "": the folder
}

// later takes note of a file that has yet to be synced.
func (y *syncer) later(path string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, p := range y.left {
		if p == path {
			return
		}
	}
	y.left = append(y.left, path)
}

// finish syncs and closes a file that is no longer written to.
func (y *syncer) finish(fs vfs.FS, f vfs.File, path string) {
	do := func() {
		err := f.Sync()
		f.Close()
		if err != nil {
			y.later(path)
		}
	}
	if fs != vfs.OS {
		do()
		return
	}
	y.mu.Lock()
	if y.closing == nil {
		y.closing = map[string]bool{}
	}
	y.closing[path] = true
	y.mu.Unlock()
	y.bg.Add(1)
	go func() {
		defer y.bg.Done()
		do()
		y.mu.Lock()
		delete(y.closing, path)
		y.mu.Unlock()
	}()
}

// wait waits until path is closed.
func (y *syncer) wait(path string) {
	y.mu.Lock()
	open := y.closing[path]
	y.mu.Unlock()
	if open {
		y.bg.Wait()
	}
}

// again syncs what could not be synced when it was its turn.
func (y *syncer) again(fs vfs.FS, dir string) error {
	y.mu.Lock()
	paths := y.left
	y.left = nil
	y.mu.Unlock()
	var errs error
	for _, p := range paths {
		err := syncPath(fs, dir, p)
		if err != nil {
			y.later(p)
			errs = errors.Join(errs, err)
		}
	}
	return errs
}

func syncPath(fs vfs.FS, dir, p string) error {
	if p == "" {
		return fs.SyncDir(dir)
	}
	f, err := fs.OpenRead(p)
	if errors.Is(err, os.ErrNotExist) { // evicted meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// Sync makes everything accepted survive a power loss. After an error a new segment is wanted: what the system could
// not write it may forget. Errors: those of the file system, and that of a SyncSoon that was under way.
func (s *Store) Sync() error {
	var before error // the system gives it once: another fsync of the file succeeds, though its pages may be lost
	if s.syncer.running != nil {
		before = <-s.syncer.running
		s.syncer.running = nil
	}
	s.syncer.bg.Wait()
	s.desc.stale = s.syncer.undescribed.Swap(false) || s.desc.stale
	s.heal()
	return s.synced(errors.Join(before, s.sync(s.file())))
}

// file is that of the open segment; nil: none.
func (s *Store) file() vfs.File {
	if s.active == nil {
		return nil
	}
	return s.active.File()
}

// sync may be called by a goroutine of its own.
func (s *Store) sync(f vfs.File) error {
	err := s.syncer.again(s.cfg.FS, s.cfg.Dir)
	if f != nil {
		if e := f.Sync(); !errors.Is(e, os.ErrClosed) { // else it was closed meanwhile, and synced before
			err = errors.Join(err, e)
		}
	}
	return err
}

func (s *Store) synced(err error) error {
	if err == nil {
		s.unsynced = false
		return nil
	}
	s.failed(err)
	// Where it fails again and again the ring is not to hold little but heads.
	if w := s.active; w != nil && (!s.unsynced || w.Size() >= 4*s.quota.LastHead()) {
		w.Distrust()
	}
	s.unsynced = true
	return fmt.Errorf("sync ring file: %w", err)
}

// SyncSoon does what Sync does without waiting for the disk. An error is returned by a later call. While one is under
// way no other begins.
func (s *Store) SyncSoon() (err error) {
	if s.cfg.FS != vfs.OS {
		return s.Sync()
	}
	y := &s.syncer
	if y.running != nil {
		select {
		case err = <-y.running:
			y.running = nil
		default:
			return nil
		}
	}
	s.cutTorn()
	s.desc.stale = y.undescribed.Swap(false) || s.desc.stale
	var text []byte
	if s.desc.stale {
		if text, _ = s.desc.text(); text != nil {
			s.desc.stale = false
		}
	}
	f, done := s.file(), make(chan error, 1)
	y.running = done
	y.bg.Add(1)
	go func() {
		defer y.bg.Done()
		if text != nil && s.cfg.FS.WriteFile(filepath.Join(s.cfg.Dir, folder.RecordingName), text) != nil {
			y.undescribed.Store(true) // with the next one
		}
		done <- s.sync(f)
	}()
	return s.synced(err)
}
