//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/shmring"
)

// resume has a go on with what an agent before it recorded into the same folder, outside of its own folder for rings: the JVMs of other
// users, whose rings are in folders of theirs below base, and those in containers, whose rings are known from what the JVMs have mapped.
// What another recorder recorded is left to that.
func resume(ctx context.Context, a *agent.Agent, base string) {
	ours := func(id string) bool {
		m, err := filepath.Glob(filepath.Join(a.Out(), "*-"+id+"*"))
		return err == nil && len(m) > 0
	}
	dirs, _ := filepath.Glob(filepath.Join(base, "heapcam-[0-9]*"))
	for _, dir := range dirs {
		var uid uint32
		if n, _ := fmt.Sscanf(filepath.Base(dir), "heapcam-%d", &uid); n != 1 || filepath.Base(dir) != fmt.Sprintf("heapcam-%d", uid) {
			continue
		}
		// Only what belongs to that user: nobody else's files are taken for a ring of that user's JVM.
		st, err := os.Lstat(dir)
		if err != nil || !st.IsDir() || st.Mode().Perm()&0o022 != 0 {
			continue
		}
		if sys, ok := st.Sys().(*syscall.Stat_t); !ok || sys.Uid != uid || os.Getuid() != 0 {
			continue
		}
		rings, _ := shmring.Scan(dir)
		for _, r := range rings {
			if pid, ticks, ok := shmring.ParseName(r); ok && ours(jvms.ID(int(pid), ticks)) {
				a.Watch(dir)
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
			wg.Go(func() { awaitRing(ctx, a, j) }) // one that was detached from has the probe, but no ring
		}
	}
	wg.Wait()
}
