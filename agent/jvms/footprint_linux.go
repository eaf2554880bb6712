package jvms

import (
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/internal/procfs"
)

// FootprintOf gives what memory the process with that pid and start takes. It reads three small files and the JVM's
// counters. Errors: fs.ErrNotExist if there is no such process any more; what cannot be read is 0.
func FootprintOf(pid int, startTicks uint64) (Footprint, error) {
	p, err := procfs.OpenStarted(pid, startTicks)
	if err != nil {
		return Footprint{}, err
	}
	defer p.Close()
	var f Footprint
	f.fromStatus(p.Text("status", maxStatus))
	j := JVM{PID: pid, NSPID: pid, UID: -1, GID: -1}
	if !j.status(p) {
		return f, nil
	}
	if root, err := p.Root(); err == nil {
		f.fromPerf(j.perf(root))
		unix.Close(root)
	}
	f.Limit, f.Used = memoryCgroup(p.Text("cgroup", maxStatus), func(path string) string {
		return readSmall(filepath.Join(cgroupRoot, path))
	})
	return f, nil
}

// fromStatus takes in /proc/PID/status.
func (f *Footprint) fromStatus(text string) {
	for line := range strings.Lines(text) {
		key, v, _ := strings.Cut(line, ":")
		n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 40)
		if err != nil {
			continue
		}
		switch key {
		case "VmRSS":
			f.RSS = n << 10
		case "RssAnon":
			f.Anon = n << 10
		case "VmSwap":
			f.Swap = n << 10
		case "Threads":
			f.Threads = n
		}
	}
}

// memoryGroup gives the path of the memory cgroup that /proc/PID/cgroup names, and the folder of its hierarchy: ""
// with version 2. It is the word of a process of another user.
func memoryGroup(text string) (top, path string) {
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) != 3:
		case f[0] == "0" && path == "":
			path = f[2]
		case strings.Contains(","+f[1]+",", ",memory,"):
			top, path = "memory", f[2]
		}
	}
	return top, path
}

// memoryCgroup gives limit and use of the memory cgroup that /proc/PID/cgroup names, or of its nearest parent with a
// limit; read reads a file below /sys/fs/cgroup. 0: not known, or no limit.
func memoryCgroup(text string, read func(path string) string) (limit, used uint64) {
	most, now := "memory.max", "memory.current"
	top, path := memoryGroup(text)
	if top != "" {
		most, now = "memory.limit_in_bytes", "memory.usage_in_bytes"
	}
	for path = filepath.Clean("/" + path); ; path = filepath.Dir(path) {
		n, err := strconv.ParseUint(strings.TrimSpace(read(filepath.Join(top, path, most))), 10, 64)
		if err == nil && n < noLimit {
			used, _ = strconv.ParseUint(strings.TrimSpace(read(filepath.Join(top, path, now))), 10, 64)
			return n, used
		}
		if path == "/" {
			return 0, 0
		}
	}
}

// readSmall reads a small file of the kernel's; "" if it cannot.
func readSmall(path string) string {
	f, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(f)
	b := make([]byte, 64)
	n, err := unix.Read(f, b)
	if err != nil {
		return ""
	}
	return string(b[:n])
}
