package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ProcessName gives the name of the program that the JVM with this pid runs: its main class or jar, else the name of its executable;
// "" if the process can not be looked at.
func ProcessName(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil || len(b) == 0 {
		return ""
	}
	args := strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
	if n := mainName(args); n != "" {
		return n
	}
	return filepath.Base(args[0])
}
