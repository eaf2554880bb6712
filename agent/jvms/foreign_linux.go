package jvms

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// runsNativeImage says whether a process runs a program that GraalVM has compiled.
func runsNativeImage(pid int) bool {
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/exe", pid), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return isNativeImage(f)
}
