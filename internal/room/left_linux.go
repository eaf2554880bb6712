package room

import (
	"os"
	"path/filepath"
)

// Left gives the bytes of memory that this process may still take, -1 if that is not known.
func Left() int64 {
	read := func(path string) string {
		b, _ := os.ReadFile(path) // what cannot be read sets no limit
		return string(b)
	}
	return leftIn(read("/proc/self/cgroup"), read("/proc/meminfo"), func(path string) string {
		return read(filepath.Join("/sys/fs/cgroup", path))
	})
}
