//go:build unix

package agent

import (
	"os"
	"path/filepath"
	"syscall"
)

// onDisk is what all below dir occupies, as the system says, each file once.
func onDisk(dir string) (n int64) {
	seen := map[uint64]bool{}
	filepath.Walk(dir, func(p string, st os.FileInfo, err error) error {
		if err == nil && p != dir {
			s := st.Sys().(*syscall.Stat_t)
			if !seen[s.Ino] {
				seen[s.Ino] = true
				n += s.Blocks * 512
			}
		}
		return nil
	})
	return n
}
