//go:build !linux

package quota

// readCPUTimes: only Linux is asked.
func readCPUTimes() (t cpuTimes, ok bool) { return t, false }
