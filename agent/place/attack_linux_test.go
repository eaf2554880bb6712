package place

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/internal/procfs"
)

// TestPIDOfAnother: nothing is put into the root of a process that has taken over a JVM's pid.
func TestPIDOfAnother(t *testing.T) {
	tmp, _, j := stage(t)
	p, err := procfs.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	for ticks, want := range map[uint64]jvms.Obstacle{p.StartTicks: 0, p.StartTicks - 1: jvms.Ended} {
		j.StartTicks = ticks
		_, err := libraryFor(j, []byte("library"))
		_, err2 := ringDirIn(j, "/nonexistent", folderOf(j), true)
		if jvms.ObstacleOf(err) != want || jvms.ObstacleOf(err2) != want {
			t.Errorf("start %d: %v, %v", ticks, err, err2)
		}
		left, _ := os.ReadDir(tmp)
		if (len(left) == 0) != (want != 0) {
			t.Errorf("start %d: %v", ticks, left)
		}
		os.RemoveAll(filepath.Join(tmp, folderOf(j)))
	}
}

// TestRootMakesNothingInFoldersOfOthers: where a folder's owner could replace what root makes there, by a folder of
// root's that would then be given away, root makes nothing, even if the JVM's user cannot do it.
func TestRootMakesNothingInFoldersOfOthers(t *testing.T) {
	tmp, _, j := stage(t)
	for _, c := range []struct {
		name  string
		owner int
		mode  os.FileMode
		ok    bool
	}{
		{"root's alone", 0, 0o755, true}, {"another's", hostile + 1, 0o755, false},
		{"another's, with sticky bit", hostile + 1, 0o755 | os.ModeSticky, false},
		{"its own, read-only", hostile, 0o555, false},
	} {
		if err := errors.Join(os.Chown(tmp, c.owner, 0), os.Chmod(tmp, c.mode)); err != nil {
			t.Fatal(err)
		}
		_, err := libraryFor(j, []byte("library"))
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if left, _ := os.ReadDir(tmp); !c.ok && len(left) > 0 {
			t.Errorf("%s: root made %v", c.name, left)
		}
		os.RemoveAll(filepath.Join(tmp, folderOf(j)))
	}
}

// TestReplacedAfterMaking: a folder that was made and then replaced by another user's, as in a shared folder without a
// sticky bit, is not taken for ours. makeFolder is run as a user who gets a folder of somebody else.
func TestReplacedAfterMaking(t *testing.T) {
	tmp, _, j := stage(t)
	if err := os.Chmod(tmp, 0o777); err != nil { // no sticky bit
		t.Fatal(err)
	}
	j.Container = false
	if _, err := libraryFor(j, []byte("library")); err == nil || !strings.Contains(err.Error(), "sticky") {
		t.Errorf("a library in a folder whose entries all may rename: %v", err)
	}
	j.Container = true // a shared volume may be all that there is
	if _, err := libraryFor(j, []byte("library")); err != nil {
		t.Error(err)
	}
	dir, theirs := filepath.Join(tmp, folderOf(j)), filepath.Join(tmp, "theirs")
	os.RemoveAll(dir)
	err := errors.Join(os.Mkdir(theirs, 0o777), os.Chown(theirs, hostile+1, hostile+1), os.Chmod(theirs, 0o777))
	if err != nil {
		t.Fatal(err)
	}
	over, swapped := make(chan struct{}), make(chan struct{})
	go func() { // the moment between mkdir and open
		defer close(swapped)
		for {
			select {
			case <-over:
				return
			default:
				if unix.Renameat2(unix.AT_FDCWD, theirs, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE) == nil {
					exchange(theirs, dir)
					os.RemoveAll(dir)
				}
			}
		}
	}()
	placed := 0
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		lib := []byte{byte(placed), byte(placed >> 8), 1}
		if _, err := libraryFor(j, lib); err == nil {
			placed++
		}
	}
	close(over)
	<-swapped
	for _, d := range []string{theirs, dir} {
		st, err := os.Lstat(d)
		if err != nil || owner(st) != hostile+1 {
			continue
		}
		if left, _ := os.ReadDir(d); len(left) > 0 {
			t.Errorf("in another user's folder: %v", left)
		}
	}
	t.Logf("%d placed", placed)
}

// TestLeftTheUserNamespace: a process that was in our user namespace when it was looked at, and has left it since,
// gets nothing that root makes: what it has for its folders may be mounts of its own making.
func TestLeftTheUserNamespace(t *testing.T) {
	tmp, _, j := stage(t)
	c := exec.Command("sleep", "600")
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: hostile, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: hostile, Size: 1}},
		Credential:  &syscall.Credential{},
	}
	if err := c.Start(); err != nil {
		t.Skipf("not run: user namespaces: %v", err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	if err := os.Chmod(tmp, 0o755); err != nil { // its user cannot write there, root can
		t.Fatal(err)
	}
	j.PID, j.Userns = c.Process.Pid, false // as it was when it was looked at
	if _, err := libraryFor(j, []byte("library")); err == nil {
		t.Error("root made a folder for it")
	}
	if left, _ := os.ReadDir(tmp); len(left) > 0 {
		t.Errorf("root made %v", left)
	}
	j.PID = os.Getpid()
	if _, err := libraryFor(j, []byte("library")); err != nil {
		t.Error(err)
	}
}

// TestRemoveFollowsNothing: when a ring's folder is removed, what a link in it or in its place leads to stays.
func TestRemoveFollowsNothing(t *testing.T) {
	for name, trap := range map[string]func(tmp, victim, dir string) error{
		"a link in it": func(_, victim, dir string) error { return os.Symlink(victim, filepath.Join(dir, "link")) },
		"a link in its place": func(_, victim, dir string) error {
			return errors.Join(os.Rename(dir, dir+"2"), os.Symlink(victim, dir))
		},
		"a link in its parent's place": func(tmp, victim, _ string) error {
			return errors.Join(os.Rename(tmp, tmp+"2"), os.Symlink(victim, tmp))
		},
	} {
		tmp, victim, j := stage(t)
		ring, err := ringDirIn(j, "/nonexistent", "heapcam-record-1-x", false)
		if err != nil {
			t.Fatal(err)
		}
		made := filepath.Join(tmp, "heapcam-record-1-x")
		kept := filepath.Join(victim, "heapcam-record-1-x")
		err = errors.Join(os.WriteFile(filepath.Join(made, "ring"), nil, 0o600), os.Mkdir(kept, 0o777),
			os.WriteFile(filepath.Join(kept, "file"), nil, 0o666), trap(tmp, victim, made))
		if err != nil {
			t.Fatal(err)
		}
		ring.Remove()
		if _, err := os.Lstat(filepath.Join(kept, "file")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRemove: a ring's folder is removed also when the JVM has ended, with what is in it.
func TestRemove(t *testing.T) {
	tmp, _, j := stage(t)
	c := exec.Command("sleep", "600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	j.PID = c.Process.Pid
	for _, mode := range []os.FileMode{0o777 | os.ModeSticky, 0o755} { // made by its user; by root
		if err := os.Chmod(tmp, mode); err != nil {
			t.Fatal(err)
		}
		ring, err := ringDirIn(j, "/nonexistent", "heapcam-record-1-x", false)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(tmp, "heapcam-record-1-x", "ring")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if mode == 0o755 {
			c.Process.Kill()
			c.Wait()
		}
		ring.Remove()
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("%v: %v %v", mode, left, err)
		}
	}
}

// TestFoldersHoldNoDescriptor: an agent that attaches for years keeps none of the folders for rings open, and what a
// folder for one recording holds is given back with it.
func TestFoldersHoldNoDescriptor(t *testing.T) {
	_, _, j := stage(t)
	open := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	before := open()
	for range 20 {
		if _, err := RingDirFor(j, "/nonexistent"); err != nil {
			t.Fatal(err)
		}
		ring, err := ringDirIn(j, "/nonexistent", "heapcam-record-1-x", false)
		if err != nil {
			t.Fatal(err)
		}
		ring.Remove()
	}
	if now := open(); now > before+5 { // the runtime may have opened some
		t.Errorf("%d descriptors, then %d", before, now)
	}
}

// TestInstallInFoldersOfOthers: the library for JVMs of our own is never put below a folder whose owner could put
// another one into its place.
func TestInstallInFoldersOfOthers(t *testing.T) {
	tmp, _, _ := stage(t)
	t.Setenv("TMPDIR", tmp)
	lib := bytes.Repeat([]byte("library"), 1000)
	if path, err := installLibrary(lib); err != nil || filepath.Dir(filepath.Dir(path)) != tmp {
		t.Fatalf("%s %v", path, err)
	}
	for _, c := range []struct {
		dir, owner int
		loose, ok  bool
	}{{0, 0, false, true}, {hostile, 0, true, false}, {0, hostile, true, false}} {
		inner := filepath.Join(tmp, "inner")
		os.RemoveAll(inner)
		err := errors.Join(os.Chown(tmp, c.dir, 0), os.Mkdir(inner, 0o755), os.Chown(inner, c.owner, 0))
		if err != nil {
			t.Fatal(err)
		}
		if err := trusted(inner, c.loose); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
	t.Setenv("TMPDIR", filepath.Join(tmp, "inner"))
	path, err := installLibrary(lib)
	if err == nil && strings.HasPrefix(path, tmp) {
		t.Errorf("installed in %s", path)
	}
	if err == nil {
		os.Remove(path)
	}
	if err := os.Chmod(tmp, 0o777); err != nil {
		t.Fatal(err)
	}
	os.Chown(tmp, 0, 0)
	if trusted(tmp, false) == nil || trusted(tmp, true) != nil {
		t.Error("a folder without a sticky bit is the last resort, and no more")
	}
}

// TestGiveAwayFollowsNothing: a link in the place of a folder that is to be given away is refused.
func TestGiveAwayFollowsNothing(t *testing.T) {
	tmp, victim, _ := stage(t)
	link := filepath.Join(tmp, "link")
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	if giveAway(link, hostile) == nil {
		t.Error("a link was followed")
	}
	if st, err := os.Stat(victim); err != nil || owner(st) != 0 {
		t.Error(st, err)
	}
}

// TestOptionsAreNoFifo: a word of a command line that names a fifo or a huge file is not read.
func TestOptionsAreNoFifo(t *testing.T) {
	dir := t.TempDir()
	fifo, huge := filepath.Join(dir, "fifo"), filepath.Join(dir, "huge")
	err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.WriteFile(huge, nil, 0o600), os.Truncate(huge, 1<<40))
	if err != nil {
		t.Fatal(err)
	}
	within(t, func() {
		for _, path := range []string{fifo, huge, "/dev/zero", dir} {
			if o, _ := WritesArchive([]string{"java", "@" + path}); o != "" {
				t.Errorf("%s: %s", path, o)
			}
		}
	})
}
