//go:build unix

package api

import (
	"fmt"
	"os"
	"syscall"
)

// CheckSecret refuses a file of secrets that others than its owner can read or write, or whose owner is neither we nor
// root.
func CheckSecret(name string) error {
	st, err := os.Stat(name)
	if err != nil {
		return err
	}
	if m := st.Mode().Perm(); m&0o077 != 0 || !st.Mode().IsRegular() {
		return &SecretError{name, fmt.Sprintf("mode %#o: only its owner may read it (chmod 600)", m)}
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && sys.Uid != 0 && int(sys.Uid) != os.Geteuid() {
		return &SecretError{name, fmt.Sprintf("belongs to uid %d", sys.Uid)}
	}
	return nil
}
