package shmring

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxMapped bounds the rings of one process that are looked at, maxDescriptors its descriptors.
const (
	maxMapped      = 64
	maxDescriptors = 1 << 16
)

// OpenOf opens the ring that the process pid (as we count) has mapped: a file by its path as the process sees it, or
// by its descriptor a memfd, and a file that was deleted. Of several the first counts that has not ended. HostPID of
// opt is set to pid. Errors: fs.ErrNotExist when it has none; else as Open.
func OpenOf(pid int, opt Options) (*Ring, error) {
	opt.HostPID = pid
	var paths []string
	err := eachMapping(pid, func(line []byte) bool {
		i := bytes.IndexByte(line, '/')
		if i < 0 || !bytes.Contains(line, []byte("/heapcam-")) {
			return false
		}
		// Of a larger ring that nobody has read yet: what came before it is in the other one, which leads to it.
		path := strings.TrimSuffix(strings.TrimSuffix(string(line[i:]), "\n"), NextSuffix)
		if _, _, ok := ParseName(path); ok && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
		return len(paths) > maxMapped
	})
	if err != nil && !errors.Is(err, errManyMaps) {
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
	for _, path := range paths {
		if take(OpenIn(pid, path, opt)) {
			return found, nil
		}
	}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	fds, err := os.Open(dir)
	if err == nil {
		defer fds.Close()
	}
	for n := 0; err == nil && n < maxDescriptors; n += namesDo {
		var names []string
		names, err = fds.Readdirnames(namesDo)
		for _, name := range names {
			link, err := os.Readlink(filepath.Join(dir, name))
			fd, err2 := strconv.Atoi(name)
			if err != nil || err2 != nil || !withoutFile(link) {
				continue
			}
			if take(OpenFD(pid, fd, opt)) {
				return found, nil
			}
		}
	}
	if found != nil {
		return found, nil
	}
	return nil, last
}

// withoutFile says that this link of a descriptor is a ring without a file: a memfd, or a file that somebody deleted
// while it is in use, as systemd-logind does with a user's files in /dev/shm when that user logs out.
func withoutFile(link string) bool {
	path, deleted := strings.CutSuffix(link, " (deleted)")
	if strings.HasPrefix(path, "/memfd:heapcam.ring") {
		return true
	}
	_, _, ok := ParseName(strings.TrimSuffix(path, NextSuffix))
	return deleted && ok
}
