//go:build !windows

package quota

import (
	"time"

	"golang.org/x/sys/unix"
)

// processCPU is the CPU time that this process has taken.
func processCPU() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
