// Package timens says by how much the time namespace of this process shifts its clocks. A JVM and an agent may be in
// different ones: both count without the shift.
package timens

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Clocks.
const (
	Monotonic = "monotonic"
	Boottime  = "boottime" // as /proc/PID/stat counts
)

// userHZ is how many ticks of /proc a second has, on all processors that heapcam runs on.
const userHZ = 100

// Ticks is what this process' time namespace adds to the start of a process, field 22 of /proc/PID/stat, modulo 2^64.
var Ticks = sync.OnceValue(func() uint64 { return uint64(Shift(Boottime) / (time.Second / userHZ)) })

// Shift is what this process' time namespace adds to a clock; 0 outside of Linux.
func Shift(clock string) time.Duration {
	b, _ := os.ReadFile("/proc/self/timens_offsets") // none: no namespaces
	return shift(string(b), clock)
}

func shift(text, clock string) time.Duration {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != clock {
			continue
		}
		s, err1 := strconv.ParseInt(f[1], 10, 64)
		n, err2 := strconv.ParseInt(f[2], 10, 64)
		const most = int64(1 << 32) // seconds: the kernel allows no more
		if err1 != nil || err2 != nil || s > most || s < -most || n < 0 || n > 999999999 {
			return 0
		}
		return time.Duration(s)*time.Second + time.Duration(n)
	}
	return 0
}
