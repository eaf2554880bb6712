package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/heapcam/heapcam/shmring"
)

// findProcess gives the pid in the agent's namespace of a ring's maker; pidns may be 0.
func findProcess(pid uint32, ticks, pidns uint64) (int, bool) {
	return shmring.FindProcess(pid, ticks, pidns)
}

// ProcessName gives the name of the program that the JVM with this pid runs: its main class or jar, else the name of its executable;
// "" if the process can not be looked at.
func ProcessName(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil || len(b) == 0 {
		return ""
	}
	args := strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
	program := filepath.Base(args[0])
	if strings.HasPrefix(program, "java") {
		if n := mainName(args); n != "" {
			return n
		}
	}
	return program
}
