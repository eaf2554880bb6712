package ringstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

// overhead is what a ring folder takes beside its ring files: the folder, recording.json and the one that replaces
// it, the folder of pulls and those of two pulls.
const overhead = 6 * vfs.Block

// minTraceSize is the smallest M, bytes.
const minTraceSize = 1 << 18

// Config is how large a ring may get.
type Config struct {
	// Dir is the ring folder, made if missing (mode 0700).
	Dir string
	// MaxTraceSize is M, bytes; 0: 1 GiB, at least 256 KiB. Deviation is d, 0 < d ≤ 0.5; 0: 0.25.
	MaxTraceSize int64
	Deviation    float64
	// KeepFree is what shall stay free on the file system, bytes: with less the ring continues inside the space that it
	// holds. 0: no care is taken before the disk is full.
	KeepFree int64
	// Compression is None, Partial, Full or Adaptive; "": adaptive.
	Compression string
	// Threshold is how full the queue must be, 0 to 1, for Partial to compress; 0: 0.2.
	Threshold float64
	// CPU is how many CPUs Adaptive may spend, on average of ten seconds; 0: 0.5.
	CPU float64
	// FS is where the files are; nil: the system's. With any other one nothing is done in the background.
	FS vfs.FS
	// Now is the clock; nil: the system's.
	Now func() time.Time
}

func (c *Config) fill() error {
	if c.FS == nil {
		c.FS = vfs.OS
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.MaxTraceSize == 0 {
		c.MaxTraceSize = 1 << 30
	}
	if c.Deviation == 0 {
		c.Deviation = 0.25
	}
	if c.Compression == "" {
		c.Compression = segment.Adaptive
	}
	if c.Threshold == 0 {
		c.Threshold = 0.2
	}
	if c.CPU == 0 {
		c.CPU = 0.5
	}
	switch {
	case c.Dir == "":
		return errors.New("ringstore: no folder")
	case c.MaxTraceSize < minTraceSize:
		return fmt.Errorf("max_trace_size of %d bytes is too small: at least 256 KiB", c.MaxTraceSize)
	case !(c.Deviation > 0 && c.Deviation <= 0.5):
		return fmt.Errorf("max_trace_size_deviation of %v is out of range: more than 0, at most 0.5", c.Deviation)
	case c.KeepFree < 0:
		return fmt.Errorf("keep_free of %d bytes is negative", c.KeepFree)
	case !(c.Threshold > 0 && c.Threshold <= 1):
		return fmt.Errorf("compression_threshold of %v is out of range: more than 0, at most 1", c.Threshold)
	case !(c.CPU > 0):
		return fmt.Errorf("compression CPU of %v is out of range", c.CPU)
	}
	return nil
}
