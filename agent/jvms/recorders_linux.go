package jvms

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// RecorderSet has the processes that hold locks of files, by the numbers of the files' inodes: a recorder holds a
// lock of the file that it writes to. The lock is searched in the kernel's list, since trying to take it could keep
// a recorder from having it.
type RecorderSet map[uint64][]int

// Recorders gives the locks that the kernel lists.
func Recorders() RecorderSet {
	f, err := os.Open("/proc/locks")
	if err != nil {
		return nil
	}
	defer f.Close()
	out := RecorderSet{}
	for lines := bufio.NewScanner(f); lines.Scan(); { // 3: FLOCK  ADVISORY  READ  4711 00:2b:1234 0 EOF
		w := strings.Fields(lines.Text())
		if len(w) < 6 || w[1] != "FLOCK" {
			continue
		}
		pid, err1 := strconv.Atoi(w[4])
		ino, err2 := strconv.ParseUint(w[5][strings.LastIndexByte(w[5], ':')+1:], 10, 64)
		if err1 == nil && err2 == nil && pid > 0 {
			out[ino] = append(out[ino], pid)
		}
	}
	return out
}

// Of says which recorder writes to the ring folder dir; "": none that can be seen. Pulls lock files too, so the verb
// of the process counts; its program may have any name.
func (r RecorderSet) Of(dir string) string {
	if len(r) == 0 {
		return ""
	}
	files, _ := fs.Glob(os.DirFS(dir), "*.hcr") // the name of the folder is no pattern
	if len(files) == 0 {
		return ""
	}
	st, err := os.Stat(filepath.Join(dir, files[len(files)-1]))
	if err != nil {
		return ""
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	for _, pid := range r[sys.Ino] {
		b, err := ReadProc(pid, "cmdline")
		if err != nil {
			continue
		}
		args := strings.Split(string(b), "\x00")
		for _, verb := range []string{"record", "run", "agent"} {
			if slices.Contains(args[min(len(args), 1):min(len(args), 3)], verb) {
				return fmt.Sprintf("recorded by `heapcam %s`, process %d", verb, pid)
			}
		}
	}
	return ""
}
