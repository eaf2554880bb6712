package room

import (
	"path/filepath"
	"strconv"
	"strings"
)

// leftIn gives the bytes of memory that a process may still take: what the machine has available, and what the limits
// of its control group and of all groups above it leave. cgroup and meminfo are the texts of these files of /proc; read
// reads a file below /sys/fs/cgroup. -1: nothing is known. Pages of files that were not used lately count as left.
func leftIn(cgroup, meminfo string, read func(path string) string) int64 {
	left := int64(-1)
	take := func(n int64) {
		if n = max(n, 0); left < 0 || n < left {
			left = n
		}
	}
	if n, ok := field(meminfo, "MemAvailable:"); ok {
		take(n << 10)
	}
	for line := range strings.Lines(cgroup) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		top, most, now, idle := "", "memory.max", "memory.current", "inactive_file"
		if strings.Contains(","+f[1]+",", ",memory,") {
			top, most, now, idle = "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
		} else if f[0] != "0" {
			continue
		}
		for path := filepath.Clean("/" + f[2]); ; path = filepath.Dir(path) {
			in := filepath.Join(top, path)
			limit, ok := number(read(filepath.Join(in, most)))
			used, known := number(read(filepath.Join(in, now)))
			if ok && known {
				n, _ := field(read(filepath.Join(in, "memory.stat")), idle)
				take(limit - max(used-n, 0))
			}
			if path == "/" {
				break
			}
		}
	}
	return left
}

// number reads a number of bytes; "max", and what is no number, is none. Version 1 of control groups has a number near
// 2^63 where there is no limit, which is one.
func number(text string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n, err == nil && n >= 0
}

// field gives the number behind a word at the start of a line.
func field(text, name string) (int64, bool) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			return number(f[1])
		}
	}
	return 0, false
}
