//go:build !windows

package agent

import (
	"os"
	"path/filepath"
	"testing"
)

// localSocket gives a path for a socket, and a check of what is made there.
func localSocket(t *testing.T) (path string, check func()) {
	dir, err := os.MkdirTemp("", "hc") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path = filepath.Join(dir, "s")
	return path, func() {
		mode := os.FileMode(0o600)
		if os.Geteuid() == 0 { // TestRoles
			mode = 0o666
		}
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != mode {
			t.Errorf("socket: %v", err)
		}
	}
}
