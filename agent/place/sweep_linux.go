package place

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/heapcam/heapcam/shmring"
)

// pidNamespace tells namespaces of pids apart: folders of several of them may share /dev/shm. 0 where there are none.
func pidNamespace() (inode uint64) {
	var st syscall.Stat_t
	if syscall.Stat("/proc/self/ns/pid", &st) == nil {
		inode = st.Ino
	}
	return inode
}

// sweep removes this user's ring folders whose recorder was killed and whose JVMs are gone: they are memory that
// nobody gives back. Pids mean nothing in another namespace: what comes from there is left alone.
func sweep(base string) {
	dirs, _ := filepath.Glob(filepath.Join(base, "heapcam-r*-*-*-*"))
	for _, dir := range dirs {
		var what string
		var pid int
		var ns uint64
		name := strings.ReplaceAll(filepath.Base(dir), "-", " ")
		n, _ := fmt.Sscanf(name, "heapcam %s %d %d ", &what, &pid, &ns)
		if n != 3 || pid <= 0 || ns != pidNamespace() || what != "run" && what != "record" {
			continue
		}
		st, err := os.Lstat(dir)
		if err != nil || !st.IsDir() || running(pid) {
			continue
		}
		if sys, ok := st.Sys().(*syscall.Stat_t); !ok || int(sys.Uid) != os.Getuid() {
			continue
		}
		rings, err := shmring.Scan(dir)
		used := err != nil
		for _, r := range rings {
			if jvm, _, ok := shmring.ParseName(r); !ok || running(int(jvm)) {
				used = true
			}
		}
		if !used {
			os.RemoveAll(dir)
		}
	}
}

// running says whether there is a process of that pid that is more than a zombie.
func running(pid int) bool {
	if syscall.Kill(pid, 0) == syscall.ESRCH {
		return false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}
