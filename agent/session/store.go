package session

import (
	"path/filepath"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// Store is what a session needs of package ringstore, whose *Store it is in production. A session's goroutine calls it.
type Store interface {
	// Write adds a frame to the open file: parts, each of whole blocks, one behind the other. After an error nothing of
	// them is in it. The store keeps no part.
	Write(parts [][]byte, f ringstore.FrameInfo) error
	// Rotate begins a new file with head. After an error the file before is still the open one, if there is any.
	Rotate(head []byte, f ringstore.FrameInfo) error
	// LastSource is the position in the shared ring up to which the recording holds everything, 0 for a new one.
	LastSource() uint64
	// Newest passes on META and definitions of the newest file, for an agent that continues a recording, and returns
	// the number of the last collection in it. Before them come the definitions of older files: what still lies in the
	// shared ring may refer to them.
	Newest(f func(trace.Block)) (lastGC uint64)
	// Queue says how full the queue of what is still to be stored is, 0 to 1.
	Queue(full float64)
	// CPU says what compression may take from now on, CPUs on average.
	CPU(cpus float64)
	// Ease says how much less than configured is done to compress: 0, 1 (fast) or 2 (little).
	Ease(n int)
	// Resize sets max_trace_size, bytes.
	Resize(m int64) error
	// KeepCounters keeps a small JSON document beside the recording, with the next sync; Counters returns what was kept
	// last, nil: nothing.
	KeepCounters(b []byte) error
	Counters() []byte
	// KeepResource keeps beside the recording whose it is, with the next sync.
	KeepResource(r trace.Resource)
	Stats() ringstore.Stats
	// SyncSoon makes what was accepted survive a power loss, without waiting for the disk; a later call returns its
	// error.
	SyncSoon() error
	Close() error
}

// tooSmallError says that no sync point fits into the recording, which continues without.
type tooSmallError interface {
	error
	TooSmall() (needed int64)
}

// ringFolder is a store of package ringstore, with the folder to read back.
type ringFolder struct {
	*ringstore.Store
	dir string
}

// OpenStore opens the ring folder of a session: a folder of the same session is continued. Errors:
// ringstore.ErrOtherRecording for the folder of another session, those of the disk.
func OpenStore(cfg ringstore.Config, who ringstore.Identity, log zerolog.Logger) (Store, error) {
	s, rec, err := ringstore.Open(cfg, who)
	if err != nil {
		return nil, err
	}
	for _, n := range rec.Notes {
		logs.Write(&log, logs.FileDamaged, logs.Path.Of(cfg.Dir), logs.Err.Of(n))
	}
	for _, f := range rec.Foreign {
		logs.Write(&log, logs.FileForeign, logs.Path.Of(filepath.Join(cfg.Dir, f.File)), logs.Session.Of(f.Session),
			logs.Own.Of(f.Own))
	}
	if rec.Torn > 0 {
		logs.Write(&log, logs.TailCut, logs.Path.Of(cfg.Dir), logs.Bytes.Of(rec.Torn))
	}
	return ringFolder{s, cfg.Dir}, nil
}

// maxRecall bounds what is read of the files before the newest for their definitions, bytes as stored: about a second.
const maxRecall = 64 << 20

func (s ringFolder) Newest(take func(trace.Block)) (lastGC uint64) {
	rec, err := ringstore.OpenRecording(s.dir)
	if err != nil || len(rec.Files) == 0 {
		return 0
	}
	defer rec.Close()
	last := len(rec.Files) - 1
	from, size := last, int64(0)
	for ; from > 0; from-- {
		for h, err := range rec.Files[from-1].Headers() {
			if err == nil && mayDefine(h.Flags) {
				size += int64(h.Stored)
			}
		}
		if size > maxRecall {
			break
		}
	}
	for _, f := range rec.Files[from:last] {
		for b, err := range f.Definitions() {
			if err == nil && b.Kind == trace.KindDefs {
				take(b)
			}
		}
	}
	newest := rec.Files[last]
	for b, err := range newest.Definitions() {
		if err == nil {
			take(b)
		}
	}
	for h, err := range newest.Headers() {
		if err == nil {
			lastGC = max(lastGC, h.LastGC)
		}
	}
	return lastGC
}

// mayDefine says that a frame of these flags may hold definitions.
func mayDefine(flags uint16) bool {
	return flags&ringstore.FlagMarked == 0 || flags&(ringstore.FlagDefs|ringstore.FlagHead) != 0
}
