package spool

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

var errNoRecording = errors.New("neither a ring nor a recording (NAME.heapcam, or a folder of *.hcr files)")

// open opens what was dropped: a container, or the ring files of a folder. Nothing that it finds is followed, or opened
// before it is known to be a regular file that has no other name: it may be anybody's who may write here. mark is given
// in any case.
func (s *spooler) open(name string, st *unix.Stat_t) (files []*os.File, mark string, err error) {
	mark = markOf(st)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		if !strings.HasSuffix(name, ".heapcam") && !strings.HasSuffix(name, ".hcr") {
			return nil, mark, errNoRecording
		}
		f, _, err := openRegular(s.fd, name)
		if err == nil {
			files = append(files, f)
		}
		return files, mark, err
	case unix.S_IFDIR:
	default:
		return nil, mark, fmt.Errorf("neither a regular file nor a folder: %w", errNoRecording)
	}
	dir, err := unix.Openat(s.fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, mark, &os.PathError{Op: "open", Path: name, Err: err}
	}
	d := os.NewFile(uintptr(dir), name)
	defer d.Close()
	names, err := d.Readdirnames(maxDropped + 1)
	if len(names) > maxDropped {
		return nil, mark, fmt.Errorf("the folder has more than %d files", maxDropped)
	}
	for _, n := range names {
		if !strings.HasSuffix(n, ".hcr") {
			continue
		}
		f, fst, err := openRegular(dir, n)
		if err != nil {
			return files, mark, err
		}
		files = append(files, f)
		mark += " " + n + markOf(fst)
	}
	if len(files) == 0 {
		return nil, mark, errNoRecording
	}
	return files, mark, nil
}

// openRegular opens a regular file of dir, and no other.
func openRegular(dir int, name string) (*os.File, *unix.Stat_t, error) {
	p, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(p)
	var st unix.Stat_t
	switch err := unix.Fstat(p, &st); {
	case err != nil:
		return nil, nil, &os.PathError{Op: "stat", Path: name, Err: err}
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, nil, fmt.Errorf("%s: not a regular file", printable(name))
	case st.Nlink != 1:
		return nil, nil, fmt.Errorf("%s: the file has %d names: copy it instead of linking it",
			printable(name), st.Nlink)
	}
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(p), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), printable(name)), &st, nil
}
