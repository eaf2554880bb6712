package shmring

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// OpenOf opens the ring that the process pid (as we count) has mapped: a file by its path as the process sees it, or a memfd by its
// descriptor. Of several the first counts that has not ended. HostPID of opt is set to pid.
// Errors: fs.ErrNotExist when it has none; else as Open.
func OpenOf(pid int, opt Options) (*Ring, error) {
	opt.HostPID = pid
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	var found *Ring
	var last error = &os.PathError{Op: "ring of", Path: "/proc/" + strconv.Itoa(pid), Err: fs.ErrNotExist}
	// take keeps r as the one to give, and says whether it is alive.
	take := func(r *Ring, err error) bool {
		if err != nil {
			last = err
			return false
		}
		if found != nil {
			found.Close()
		}
		found = r
		s, err := r.Status()
		return err == nil && !s.State.Ended()
	}
	seen := map[string]bool{}
	for line := range bytes.Lines(b) {
		i := bytes.IndexByte(line, '/')
		if i < 0 || len(seen) > 64 {
			continue
		}
		path := strings.TrimSuffix(string(line[i:]), "\n")
		if _, _, ok := ParseName(path); !ok || seen[path] {
			continue
		}
		seen[path] = true
		if take(OpenIn(pid, path, opt)) {
			return found, nil
		}
	}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	fds, _ := os.ReadDir(dir)
	for _, e := range fds {
		link, err := os.Readlink(filepath.Join(dir, e.Name()))
		fd, err2 := strconv.Atoi(e.Name())
		if err != nil || err2 != nil || !strings.HasPrefix(link, "/memfd:heapcam.ring") {
			continue
		}
		if take(OpenFD(pid, fd, opt)) {
			return found, nil
		}
	}
	if found != nil {
		return found, nil
	}
	return nil, last
}
