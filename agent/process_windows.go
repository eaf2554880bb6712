package agent

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"

	"github.com/heapcam/heapcam/shmring"
)

func findProcess(pid uint32, ticks, pidns uint64) (int, bool) {
	return shmring.FindProcess(pid, ticks, pidns)
}

// ProcessName gives the name of a process' executable without .exe; "" if it cannot be looked at. Its arguments are
// not ours to read.
func ProcessName(pid int) string {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return ""
	}
	defer windows.CloseHandle(h)
	b := make([]uint16, windows.MAX_LONG_PATH)
	n := uint32(len(b))
	if windows.QueryFullProcessImageName(h, 0, &b[0], &n) != nil {
		return ""
	}
	return strings.TrimSuffix(filepath.Base(windows.UTF16ToString(b[:n])), ".exe")
}

// ownedBy is for callers that the kernel names, which only Linux does.
func ownedBy(int, uint64, int) bool { return false }
