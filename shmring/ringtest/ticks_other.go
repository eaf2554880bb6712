//go:build !windows

package ringtest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// StartTicks gives field 22 of /proc/PID/stat, 1 where there is none.
func StartTicks(pid int) uint64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if err != nil || len(f) < 20 {
		return 1
	}
	n, err := strconv.ParseUint(f[19], 10, 64)
	if err != nil {
		return 1
	}
	return n
}
