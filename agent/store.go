package agent

import "github.com/heapcam/heapcam/trace"

// store is what a session needs of package ringstore.
type store interface {
	// Append adds a frame of whole blocks to the open file. After an error nothing of payload is in it.
	Append(payload []byte, f frameInfo) error
	// Rotate begins a new file with head. After an error the file before is still the open one, if there is any.
	Rotate(head []byte, f frameInfo) error
	// LastSource is the position in the shared ring up to which the recording holds everything, 0 for a new one.
	LastSource() uint64
	// Newest gives the META and definitions of the newest file, for one who goes on with a recording, and the number of the last collection in it.
	// Before them come the definitions of older files: what still lies in the shared ring may refer to them.
	Newest(f func(trace.Block)) (lastGC uint64)
	// Queue tells how full the queue of what is still to be stored is, 0 to 1.
	Queue(full float64)
	// CPU is what compression may take from now on, CPUs on average.
	CPU(cpus float64)
	// Ease says how much less than configured is done to compress: 0, 1 (fast) or 2 (little).
	Ease(n int)
	// Resize makes max_trace_size what it says, bytes.
	Resize(m int64) error
	// KeepCounters keeps a small JSON document beside the recording, with the next sync; Counters gives what was kept last, nil: nothing.
	KeepCounters(b []byte) error
	Counters() []byte
	Stats() storeStats
	// SyncSoon makes what was accepted survive a power loss, without waiting for the disk; an error is told by a later call.
	SyncSoon() error
	Close() error
}

// identity is whose recording a ring folder holds.
type identity struct {
	Session    string
	Name       string
	PID        int // in the agent's namespace where known
	UID        int // whose the ring is
	NSPID      uint32
	StartTicks uint64
	VM, Probe  string
}

// frameInfo describes a frame: the position in the shared ring behind its last block, its collections (0: none), its times in ns.
type frameInfo struct {
	Source          uint64
	FirstGC, LastGC uint64
	T0, T1          uint64
	Listing, Defs   bool // it holds a sync point, definitions
	Summary         bool // it is a summary
}

// storeStats is what the scheduler and status need to know of a store, in bytes.
type storeStats struct {
	Bytes     int64 // all that occupies blocks
	Active    int64 // the open file
	Room      int64 // what may still be written to the open file before M(1+d) is reached, the oldest files kept
	Target    int64 // T
	Limit     int64 // M(1+d), or what the disk leaves
	Files     int
	Rotate    bool    // a file has reached T or the total M: rotation is wanted
	Guarantee bool    // M(1−d) of complete trace is kept
	Deviation float64 // the effective one
	Capped    bool    // the disk is full, or keep_free is reached
	Needed    int64   // max_trace_size that a sync point needs, 0 if the one in force does
	Evicted   int64   // files given up for newer ones
	Cut       int64   // sync points that did not fit
	Faults    int64   // failed operations of the file system
	Written   int64   // bytes of frames, as stored
	Held      int64   // of files that were given up while a pull reads them
	Foreign   int     // files of other recordings in the folder
}

// tooSmallError says that no sync point fits into the ring: it goes on without.
type tooSmallError interface {
	error
	TooSmall() (needed int64)
}
