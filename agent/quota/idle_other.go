//go:build !linux

package quota

// readCPUTimes: only implemented on Linux.
func readCPUTimes() (t cpuTimes, ok bool) { return t, false }
