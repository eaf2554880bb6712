package segment

import (
	"path/filepath"
	"strconv"
	"strings"
)

const Suffix = ".hcr"

// ParseName gives the number that a ring file's name says, of a path or a member of a container.
func ParseName(path string) (n uint64, ok bool) {
	name := filepath.Base(path)
	name = name[strings.LastIndexByte(name, ':')+1:]
	digits, ok := strings.CutSuffix(name, Suffix)
	if !ok || len(digits) < 8 || digits[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

func Number(path string) uint64 {
	n, _ := ParseName(path)
	return n
}

// Before orders the names of ring files: by number, then as text.
func Before(a, b string) bool {
	x, _ := ParseName(a)
	y, _ := ParseName(b)
	if x != y {
		return x < y
	}
	return a < b
}

// Placed says whether the file's name has its number.
func (f *File) Placed() bool {
	n, ok := ParseName(f.Name)
	return ok && n == f.Index
}
