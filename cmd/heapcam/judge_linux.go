package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ownProgram is this program, also after an upgrade has replaced its file.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// childOf keeps a process from the signals that a terminal sends to this one.
func childOf(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// yield has a process of ours run behind the others, and be the first to end when memory is short. The unit may forbid
// that.
func yield(pid int) {
	_ = unix.Setpriority(unix.PRIO_PROCESS, pid, 19)
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0)
}

// clockTick is the unit of times in /proc/PID/stat: USER_HZ, which is 100 on every architecture of heapcam's.
const clockTick = 10 * time.Millisecond

// taken says what a process takes: CPU time, and bytes of memory.
func taken(pid int) (cpu time.Duration, memory int64, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, false
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 22 {
		return 0, 0, false
	}
	number := func(i int) int64 { n, _ := strconv.ParseInt(string(f[i]), 10, 64); return n }
	return time.Duration(number(11)+number(12)) * clockTick, number(21) * int64(os.Getpagesize()), true
}
