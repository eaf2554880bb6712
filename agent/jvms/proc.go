package jvms

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
)

const (
	// maxProc bounds what is read of a process' own words. A process can say that its command line or environment is gigabytes of its memory
	// (prctl PR_SET_MM).
	maxProc = 2 << 20
	maxMaps = 16 << 20 // a JVM with a hundred thousand mappings has 10 MiB
)

// ReadProc gives the beginning of a file of /proc/PID: maxProc bytes at most, of maps maxMaps.
func ReadProc(pid int, name string) ([]byte, error) {
	f, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	limit := int64(maxProc)
	if name == "maps" {
		limit = maxMaps
	}
	return io.ReadAll(io.LimitReader(f, limit))
}
