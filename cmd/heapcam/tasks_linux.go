package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/agent/jvms"
)

// ownTasks is how many threads heapcam takes, about. Go ends the program with a stack trace where it gets no thread.
const ownTasks = 24

// fewTasks says which limit leaves fewer than ownTasks processes and threads; "": none that is known.
func fewTasks() string {
	var l unix.Rlimit
	if os.Geteuid() != 0 && unix.Getrlimit(unix.RLIMIT_NPROC, &l) == nil && l.Cur < ownTasks {
		return fmt.Sprintf("this user may have %d processes and threads (ulimit -u)", l.Cur)
	}
	dir := filepath.Join("/sys/fs/cgroup", jvms.Cgroup(os.Getpid()))
	if left, ok := tasksLeft(dir); ok && left < ownTasks {
		return fmt.Sprintf("this cgroup may have %d more processes and threads (pids.max)", left)
	}
	return ""
}

// tasksLeft says how many processes and threads a cgroup may still have; false: there is no limit, or none is known.
func tasksLeft(dir string) (left int64, ok bool) {
	number := func(name string) (int64, error) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return 0, err
		}
		return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	}
	most, err := number("pids.max") // "max" is no number
	if err != nil {
		return 0, false
	}
	now, err := number("pids.current")
	return max(most-now, 0), err == nil
}
