//go:build unix && !linux

package place

import (
	"fmt"
	"os"
	"syscall"
)

// OwnFolder makes dir with mode 0700, owned by uid, or checks that it is such: in a shared folder somebody else may
// have made it first.
func OwnFolder(dir string, uid int) error {
	switch err := os.Mkdir(dir, 0o700); {
	case err == nil:
		if uid != os.Getuid() {
			return os.Lchown(dir, uid, -1)
		}
		return nil
	case !os.IsExist(err):
		return err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok || !st.IsDir() || int(sys.Uid) != uid || st.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("users other than uid %[2]d can write to %[1]s: remove it", dir, uid)
	}
	return nil
}
