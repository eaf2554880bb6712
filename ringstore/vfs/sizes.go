package vfs

import (
	"io"
	"path/filepath"
)

// Block is what a file system allocates in; occupied sizes are rounded up to it.
const Block = 4096

func Occupied(n int64) int64 { return (n + Block - 1) / Block * Block }

// Below is what the files below dir occupy, bytes: each once, whatever its names.
func Below(fs FS, dir string) int64 { return occupiedBelow(fs, dir, map[FileID]bool{}) }

func occupiedBelow(fs FS, dir string, seen map[FileID]bool) (sum int64) {
	es, err := fs.ReadDir(dir)
	if err != nil {
		return 0
	}
	sum = Block // the folder
	for _, e := range es {
		if e.Dir {
			sum += occupiedBelow(fs, filepath.Join(dir, e.Name), seen)
			continue
		}
		if e.ID != (FileID{}) {
			if seen[e.ID] {
				continue
			}
			seen[e.ID] = true
		}
		sum += e.Occupies()
	}
	return sum
}

// longHole is the least length of a hole that Written takes for one that no ring file has.
const longHole = 1 << 20

// Written is the size of an open file without a long hole at its end, of which nothing was ever written: it would take
// for ever to read, and a copy of it would fill a disk.
func Written(f File, size int64) int64 {
	h, ok := f.(interface{ DataEnd(int64) int64 })
	if !ok {
		return size
	}
	if end := h.DataEnd(size); size-end > longHole {
		return end
	}
	return size
}

func ReadSmall(fs FS, path string) ([]byte, error) {
	f, err := fs.OpenRead(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
}
