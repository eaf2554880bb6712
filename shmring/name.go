package shmring

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// NextSuffix is what the name of a ring has behind it that takes over from the ring of that name; it goes when the
// agent has read that one. Part of the format.
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

// maxScan bounds the rings of a folder, the names that are looked at for them, and how many are asked for at a time:
// any user who may write there can make as many as there is room.
const (
	maxScan  = 1024
	maxNames = 1 << 18
	namesDo  = 1024
)

// Scan gives the paths of what is named like a ring in a folder, sorted; maxScan at most. Whether they are rings,
// Open tells. A folder that does not exist has none. A ring that takes over from one that is no longer there gets the
// name of that one.
func Scan(dir string) ([]string, error) {
	d, err := os.OpenFile(dir, os.O_RDONLY|folderOnly, 0)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var names []string
	var entries []os.DirEntry
	for n := 0; err == nil && n < maxNames && len(names) < maxScan; n += namesDo {
		entries, err = d.ReadDir(namesDo)
		for _, e := range entries {
			name, next := strings.CutSuffix(e.Name(), NextSuffix)
			if _, _, ok := ParseName(name); !ok || !e.Type().IsRegular() || len(names) == maxScan {
				continue
			}
			// The agent that was to follow to it is gone, and somebody removed the one before it.
			if next && !inherit(d, name) {
				continue
			}
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}
