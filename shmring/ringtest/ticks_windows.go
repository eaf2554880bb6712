package ringtest

import "github.com/heapcam/heapcam/shmring"

// StartTicks gives when a process was created, as rings of Windows have it; 1 if there is none.
func StartTicks(pid int) uint64 {
	if t, ok := shmring.StartTicks(pid); ok && t != 0 {
		return t
	}
	return 1
}
