package place

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/shmring"
)

// Resume has r continue what an agent before it recorded into the same folder, outside of its own folder for rings:
// the JVMs of other users, whose rings are in folders of theirs below base, and those in containers, whose rings are
// known from what the JVMs have mapped. What another recorder recorded is left to that.
func Resume(ctx context.Context, r Recorder, base string) {
	ours := func(id string) bool {
		m, err := fs.Glob(os.DirFS(r.Out), "*-"+id+"*") // the name of the folder is no pattern
		return err == nil && len(m) > 0
	}
	dirs, _ := filepath.Glob(filepath.Join(base, "heapcam-[0-9]*"))
	more, _ := filepath.Glob(filepath.Join(rootsBase, "heapcam-[0-9]*"))
	dirs = append(dirs, more...)
	for _, dir := range dirs {
		if !isUsersFolder(dir) {
			continue
		}
		rings, _ := shmring.Scan(dir)
		for _, ring := range rings {
			if pid, ticks, ok := shmring.ParseName(ring); ok && ours(jvms.ID(int(pid), ticks)) {
				r.Watch(dir)
				break
			}
		}
	}
	found, err := jvms.List()
	if err != nil {
		return
	}
	var wg sync.WaitGroup
	for _, j := range found {
		if j.Recorded && j.Container && ours(j.ID) {
			wg.Go(func() { r.Await(ctx, j) }) // one that was detached from has the probe, but no ring
		}
	}
	wg.Wait()
}

// isUsersFolder says whether a folder named heapcam-UID belongs to that user alone: nobody else's files are taken for
// a ring of that user's JVM. Only root has to do with such folders.
func isUsersFolder(dir string) bool {
	var uid uint32
	n, _ := fmt.Sscanf(filepath.Base(dir), "heapcam-%d", &uid)
	if n != 1 || filepath.Base(dir) != fmt.Sprintf("heapcam-%d", uid) || os.Getuid() != 0 {
		return false
	}
	st, err := os.Lstat(dir)
	if err != nil || !st.IsDir() || st.Mode().Perm()&0o022 != 0 {
		return false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && sys.Uid == uid
}
