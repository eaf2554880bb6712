//go:build unix

package place

import (
	"os"
	"path/filepath"
	"strconv"
)

// PrivateDir gives a folder that only this user can write to.
func PrivateDir() (string, error) {
	dir := privateName()
	return dir, OwnFolder(dir, os.Getuid())
}

// privateName is the folder below $XDG_RUNTIME_DIR, else that below the folder for temporary files.
func privateName() string {
	if x := os.Getenv("XDG_RUNTIME_DIR"); x != "" && filepath.IsAbs(x) {
		if st, err := os.Stat(x); err == nil && st.IsDir() {
			return filepath.Join(x, "heapcam")
		}
	}
	return ownName(os.TempDir())
}

// ownName is this user's folder below base.
func ownName(base string) string { return filepath.Join(base, "heapcam-"+strconv.Itoa(os.Getuid())) }
