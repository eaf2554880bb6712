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
	// Newest gives the blocks of the newest file, for one who goes on with a recording.
	Newest(f func(trace.Block))
	Stats() storeStats
	Close() error
}

// identity is whose recording a ring folder holds.
type identity struct {
	Session    string
	Name       string
	PID        int // in the agent's namespace where known
	NSPID      uint32
	StartTicks uint64
	VM, Probe  string
}

// frameInfo describes a frame: the position in the shared ring behind its last block, its collections (0: none), its times in ns.
type frameInfo struct {
	Source          uint64
	FirstGC, LastGC uint64
	T0, T1          uint64
}

// storeStats is what the scheduler and status need to know of a store, in bytes.
type storeStats struct {
	Bytes     int64 // all that occupies blocks
	Active    int64 // the open file
	Room      int64 // what may still be written to the open file before M(1+d) is reached, the oldest files kept
	Files     int
	Rotate    bool // a file has reached T or the total M: rotation is wanted
	Guarantee bool // M(1−d) of complete trace is kept
}
