package shmring

import (
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// NextSuffix is what the name of a ring has behind it that takes over from the ring of that name; it goes when the agent has read that one. Part of the
// format.
const NextSuffix = ".next"

// FileName gives the name of the ring of a process: pid in its own namespace, start ticks. Part of the format.
func FileName(pid uint32, startTicks uint64) string {
	return "heapcam-" + strconv.FormatUint(uint64(pid), 10) + "-" + strconv.FormatUint(startTicks, 10) + ".ring"
}

// ParseName is the inverse of FileName; the last element of a path will do.
func ParseName(path string) (pid uint32, startTicks uint64, ok bool) {
	s, ok := strings.CutPrefix(filepath.Base(path), "heapcam-")
	if !ok {
		return 0, 0, false
	}
	if s, ok = strings.CutSuffix(s, ".ring"); !ok {
		return 0, 0, false
	}
	a, b, ok := strings.Cut(s, "-")
	if !ok {
		return 0, 0, false
	}
	p, err1 := strconv.ParseUint(a, 10, 32)
	t, err2 := strconv.ParseUint(b, 10, 64)
	if err1 != nil || err2 != nil || FileName(uint32(p), t) != "heapcam-"+s+".ring" { // "007" is not a pid
		return 0, 0, false
	}
	return uint32(p), t, true
}

// Scan gives the paths of what is named like a ring in a folder, sorted. Whether they are rings, Open tells. A folder that does not
// exist has none. A ring that takes over from one that is no longer there gets the name of that one.
func Scan(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	var paths []string
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if name, next := strings.CutSuffix(path, NextSuffix); next {
			// The agent that was to follow to it is gone, and somebody removed the one before it.
			if _, err := os.Lstat(name); !os.IsNotExist(err) || os.Link(path, name) != nil || os.Remove(path) != nil {
				continue
			}
			path = name
		}
		if _, _, ok := ParseName(path); ok {
			paths = append(paths, path)
		}
	}
	sort.Strings(paths)
	return paths, err
}
