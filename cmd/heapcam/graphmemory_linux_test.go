package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/room"
	"github.com/heapcam/heapcam/trace/references"
	"github.com/heapcam/heapcam/trace/references/referencestest"
	"golang.org/x/sys/unix"
)

// wide is a recording of a static array of so many nodes, each of which holds another object.
func wide(t *testing.T, nodes int) (dir string) {
	t.Helper()
	b := referencestest.New()
	b.Class("[Ljava/lang/Object;")
	b.Class("app/AppClassLoader", "parent")
	b.Class("app/Node", "next", "value")
	loader, m := b.New("app/AppClassLoader"), b.Mirror("app/Main", "all")
	b.Root(loader, references.Root{Kind: references.LoaderRoot})
	b.Add(loader, m)
	all := b.New("[Ljava/lang/Object;")
	b.Set(m, "all", all)
	before := -1
	for i := range nodes {
		n, v := b.New("app/Node"), b.New("app/Value")
		b.Set(n, "value", v)
		if i%100 > 0 {
			b.Set(before, "next", n)
		}
		before = n
		b.Add(all, n)
	}
	dir = stored(t, b.Blocks(), true)
	aged(t, dir, time.Hour)
	return dir
}

// inGroup gives what runs a command with so much memory: in a control group of its own.
func inGroup(t *testing.T, bytes int) (wrap string) {
	t.Helper()
	group, limit := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	if _, err := os.Stat(group); err != nil {
		group, limit = "/sys/fs/cgroup", "memory.max"
	}
	group = filepath.Join(group, fmt.Sprintf("heapcam-graph-%d", os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("not run: memory limits of a control group (%v)", err)
	}
	t.Cleanup(func() {
		for range 100 { // the kernel takes a while to see it empty
			if os.Remove(group) == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("%s cannot be removed", group)
	})
	if err := os.WriteFile(filepath.Join(group, limit), fmt.Append(nil, bytes), 0o644); err != nil {
		t.Skipf("not run: memory limits of a control group (%v)", err)
	}
	return fmt.Sprintf("echo $$ > %s/cgroup.procs && exec heapcam ", group)
}

// TestGraphLargerThanMemory: a process that may have less memory than the graph of a listing needs puts it into a file,
// and answers as one with more memory does: the first time, and from the graph that was kept.
func TestGraphLargerThanMemory(t *testing.T) {
	var fs unix.Statfs_t
	if err := unix.Statfs(t.TempDir(), &fs); err != nil {
		t.Fatal(err)
	}
	if fs.Type == unix.TMPFS_MAGIC || fs.Type == unix.OVERLAYFS_SUPER_MAGIC {
		t.Skip("not run: graphs larger than memory (the temporary folder may be in memory itself)")
	}
	cache := t.TempDir()
	r, err := room.New(cache, 1<<20)
	if err != nil {
		t.Skipf("not run: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	dir := wide(t, 500_000)
	wrap := inGroup(t, 96<<20)
	verb := func(wrap string) string {
		c := exec.Command("/bin/sh", "-c", wrap+"holders --class app.Value "+dir)
		c.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%.2000s", wrap, err, out)
		}
		return string(out)
	}
	first, second := verb(wrap), verb(wrap)
	kept, _ := filepath.Glob(filepath.Join(cache, "heapcam", graphFiles))
	if len(kept) != 1 {
		t.Errorf("kept: %v", kept)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "heapcam", "room-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	cache = t.TempDir()
	want := verb("exec heapcam ")
	if !strings.Contains(want, "static app.Main.all") || first != want || second != want {
		t.Errorf("got %s\nand %s\nwant %s", first, second, want)
	}
}
