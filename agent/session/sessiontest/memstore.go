// Package sessiontest has what tests of recordings need: a store in memory, a JVM's side of the shared ring, and a
// check of what was recorded against what happened.
//
// What it does not do: it makes no session, so that tests of package session itself can use it.
package sessiontest

import (
	"errors"
	"slices"
	"sync"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// MemStore is a store in memory: one slice of frames a file.
type MemStore struct {
	Limit  int   // bytes of a file until rotation is wanted
	Target int64 // what Stats says a file is to have
	Small  bool  // no listing fits

	mu     sync.Mutex
	files  [][]byte
	source uint64
	refuse int  // the next so many writes are refused
	full   bool // the open file takes nothing more
	gone   bool // it was removed
	closed bool
	kept   []byte
	whose  trace.Resource
}

// Files returns what was written, file by file.
func (m *MemStore) Files() [][]byte { m.mu.Lock(); defer m.mu.Unlock(); return slices.Clone(m.files) }

// Refuse makes the store refuse the next n writes.
func (m *MemStore) Refuse(n int) { m.mu.Lock(); defer m.mu.Unlock(); m.refuse = n }

// Fill makes the open file take nothing more.
func (m *MemStore) Fill() { m.mu.Lock(); defer m.mu.Unlock(); m.full = true }

// Remove removes the open file, as somebody else might.
func (m *MemStore) Remove() { m.mu.Lock(); defer m.mu.Unlock(); m.gone = true }

// Closed says whether Close was called.
func (m *MemStore) Closed() bool { m.mu.Lock(); defer m.mu.Unlock(); return m.closed }

// smallError is what a store says whose ring cannot hold a listing.
type smallError struct{}

func (smallError) Error() string   { return "too small" }
func (smallError) TooSmall() int64 { return 12345 }

var errRefused = errors.New("no room")

func (m *MemStore) Write(parts [][]byte, f ringstore.FrameInfo) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuse > 0 {
		m.refuse--
		return errRefused
	}
	if m.gone {
		return ringstore.ErrNoFile
	}
	if m.Small && f.Flags&ringstore.FlagListing != 0 {
		return smallError{}
	}
	if m.full {
		return errRefused
	}
	if len(m.files) == 0 {
		return errors.New("no file")
	}
	last := len(m.files) - 1
	for _, p := range parts {
		m.files[last] = append(m.files[last], p...)
	}
	m.source = f.Source
	return nil
}

func (m *MemStore) Rotate(p []byte, f ringstore.FrameInfo) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuse > 0 {
		m.refuse--
		return errRefused
	}
	if m.Small && f.Flags&ringstore.FlagListing != 0 {
		return smallError{}
	}
	m.files, m.full, m.gone = append(m.files, append([]byte(nil), p...)), false, false
	m.source = f.Source
	return nil
}

func (m *MemStore) Newest(f func(trace.Block)) (lastGC uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.files); n > 0 {
		for _, old := range m.files[:n-1] {
			for b := range trace.Blocks(old) {
				if b.Kind == trace.KindDefs {
					f(b)
				}
			}
		}
		for b := range trace.Blocks(m.files[n-1]) {
			f(b)
			if e, err := trace.DecodeEpoch(b); err == nil {
				lastGC = e.Pause.GC
			}
		}
	}
	return lastGC
}

func (m *MemStore) LastSource() uint64 { m.mu.Lock(); defer m.mu.Unlock(); return m.source }
func (m *MemStore) Queue(float64)      {}
func (m *MemStore) CPU(float64)        {}
func (m *MemStore) Ease(int)           {}
func (m *MemStore) Resize(int64) error { return nil }
func (m *MemStore) Counters() []byte   { m.mu.Lock(); defer m.mu.Unlock(); return m.kept }
func (m *MemStore) KeepCounters(b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = b
	return nil
}
func (m *MemStore) KeepResource(r trace.Resource) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.whose = r
}

// Whose is what KeepResource was given last.
func (m *MemStore) Whose() trace.Resource { m.mu.Lock(); defer m.mu.Unlock(); return m.whose }

func (m *MemStore) SyncSoon() error { return nil }
func (m *MemStore) Close() error    { m.mu.Lock(); defer m.mu.Unlock(); m.closed = true; return nil }
func (m *MemStore) Stats() ringstore.Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	if len(m.files) > 0 {
		n = len(m.files[len(m.files)-1])
	}
	return ringstore.Stats{Active: int64(n), Files: len(m.files), Rotate: n >= m.Limit || m.full, Room: 1 << 30,
		Guarantee: true, Target: m.Target}
}
