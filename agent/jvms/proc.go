package jvms

import (
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/heapcam/heapcam/internal/procfs"
)

// ReadProc gives the beginning of a file of /proc/PID: procfs.MaxText bytes at most, of maps procfs.MaxMaps.
func ReadProc(pid int, name string) ([]byte, error) {
	f, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	limit := int64(procfs.MaxText)
	if name == "maps" {
		limit = procfs.MaxMaps
	}
	return io.ReadAll(io.LimitReader(f, limit))
}
