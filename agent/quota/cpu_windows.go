package quota

import (
	"time"

	"golang.org/x/sys/windows"
)

// processCPU is the CPU time that this process has taken.
func processCPU() time.Duration {
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user) != nil {
		return 0
	}
	ns := func(f windows.Filetime) int64 { return (int64(f.HighDateTime)<<32 | int64(f.LowDateTime)) * 100 }
	return time.Duration(ns(kernel) + ns(user))
}
