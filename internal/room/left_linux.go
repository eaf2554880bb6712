package room

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Left gives the bytes of memory that this process may still take, -1 if that is not known.
func Left() int64 {
	read := func(path string) string {
		b, _ := os.ReadFile(path) // what cannot be read sets no limit
		return string(b)
	}
	left := leftIn(read("/proc/self/cgroup"), read("/proc/meminfo"), func(path string) string {
		return read(filepath.Join("/sys/fs/cgroup", path))
	})
	var limit unix.Rlimit // of addresses: ulimit -v
	if err := unix.Getrlimit(unix.RLIMIT_AS, &limit); err != nil || limit.Cur > 1<<60 {
		return left
	}
	pages, _, _ := strings.Cut(read("/proc/self/statm"), " ")
	n, err := strconv.ParseInt(pages, 10, 64)
	if err != nil {
		return left
	}
	if n = max(int64(limit.Cur)-n*int64(os.Getpagesize()), 0); left < 0 || n < left {
		return n
	}
	return left
}
