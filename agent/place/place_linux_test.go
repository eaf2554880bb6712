package place

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/agent/jvms"
)

// hostile is a user whose JVM is to be recorded, and what that user may do to the folders that it can write to.
const hostile = 61077

// stage gives a folder that all may write to, as /tmp is, and makes it the only one that libraries and rings may be
// put into.
func stage(t *testing.T) (tmp, victim string, j jvms.JVM) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not run: folders of hostile users (needs root)")
	}
	base := t.TempDir()
	for d := base; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
		os.Chmod(d, 0o755)
	}
	tmp, victim = filepath.Join(base, "tmp"), filepath.Join(base, "victim")
	for d, m := range map[string]os.FileMode{tmp: 0o777 | os.ModeSticky, victim: 0o700} {
		if err := errors.Join(os.Mkdir(d, 0o755), os.Chmod(d, m)); err != nil {
			t.Fatal(err)
		}
	}
	libs, rings := libraryBases, ringBases
	libraryBases, ringBases = []string{tmp}, []string{tmp}
	t.Cleanup(func() { libraryBases, ringBases = libs, rings })
	return tmp, victim, jvms.JVM{
		PID: os.Getpid(), NSPID: os.Getpid(), UID: hostile, GID: hostile, Name: "hostile", Container: true,
	}
}

func owner(st os.FileInfo) int { return int(st.Sys().(*syscall.Stat_t).Uid) }

func exchange(a, b string) { unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) }

func own(t *testing.T, err error, paths ...string) {
	t.Helper()
	for _, p := range paths {
		err = errors.Join(err, os.Lchown(p, hostile, hostile))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestHostilePlaces lays traps where the library and the ring of a JVM are put: nothing is written outside, nothing of
// others is changed, and where there is a way the right bytes come to stand in a file of the JVM's user.
func TestHostilePlaces(t *testing.T) {
	lib := bytes.Repeat([]byte("library"), 1000)
	const name = "libheapcam-" // and a part of its sum
	var file string            // the whole name, as an undisturbed run gives it
	for _, c := range []struct {
		name string
		trap func(t *testing.T, tmp, victim string)
		ok   bool
	}{
		{"none", func(*testing.T, string, string) {}, true},
		{"folder is a link", func(t *testing.T, tmp, victim string) {
			d := filepath.Join(tmp, fmt.Sprintf("heapcam-%d", hostile))
			own(t, os.Symlink(victim, d), d)
		}, false},
		{"folder is another's", func(t *testing.T, tmp, _ string) {
			d := filepath.Join(tmp, fmt.Sprintf("heapcam-%d", hostile))
			own(t, errors.Join(os.Mkdir(d, 0o755), os.Chown(d, hostile+1, hostile+1)))
		}, false},
		{"folder is open to all", func(t *testing.T, tmp, _ string) {
			d := filepath.Join(tmp, fmt.Sprintf("heapcam-%d", hostile))
			own(t, errors.Join(os.Mkdir(d, 0o777), os.Chmod(d, 0o777)), d)
		}, false},
		{"folder is a file", func(t *testing.T, tmp, _ string) {
			d := filepath.Join(tmp, fmt.Sprintf("heapcam-%d", hostile))
			own(t, os.WriteFile(d, nil, 0o644), d)
		}, false},
		{"library is a link", func(t *testing.T, tmp, victim string) {
			d := filepath.Join(tmp, fmt.Sprintf("heapcam-%d", hostile))
			l := filepath.Join(d, file)
			own(t, errors.Join(os.Mkdir(d, 0o700), os.Symlink(filepath.Join(victim, "secret"), l)), d, l)
		}, true},
		{"library is a hard link", func(t *testing.T, tmp, victim string) {
			d := filepath.Join(tmp, fmt.Sprintf("heapcam-%d", hostile))
			l := filepath.Join(d, file)
			own(t, errors.Join(os.Mkdir(d, 0o700), os.Link(filepath.Join(victim, "secret"), l)), d)
		}, true},
		{"library is a fifo", func(t *testing.T, tmp, _ string) {
			d := filepath.Join(tmp, fmt.Sprintf("heapcam-%d", hostile))
			l := filepath.Join(d, file)
			own(t, errors.Join(os.Mkdir(d, 0o700), syscall.Mkfifo(l, 0o600)), d, l)
		}, true},
		{"library is a fifo that somebody keeps open", func(t *testing.T, tmp, _ string) {
			d := filepath.Join(tmp, fmt.Sprintf("heapcam-%d", hostile))
			l := filepath.Join(d, file)
			own(t, errors.Join(os.Mkdir(d, 0o700), syscall.Mkfifo(l, 0o600)), d, l)
			f, err := os.OpenFile(l, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
		}, true},
		{"library is another's file", func(t *testing.T, tmp, _ string) {
			d := filepath.Join(tmp, fmt.Sprintf("heapcam-%d", hostile))
			l := filepath.Join(d, file)
			own(t, errors.Join(os.Mkdir(d, 0o700), os.WriteFile(l, lib, 0o700), os.Chown(l, hostile+1, hostile+1)), d)
		}, true},
		{"library can be written to by others", func(t *testing.T, tmp, _ string) {
			d := filepath.Join(tmp, fmt.Sprintf("heapcam-%d", hostile))
			l := filepath.Join(d, file)
			own(t, errors.Join(os.Mkdir(d, 0o700), os.WriteFile(l, lib, 0o700), os.Chmod(l, 0o777)), d, l)
		}, true},
		{"library is a folder", func(t *testing.T, tmp, _ string) {
			d := filepath.Join(tmp, fmt.Sprintf("heapcam-%d", hostile))
			l := filepath.Join(d, file)
			own(t, errors.Join(os.Mkdir(d, 0o700), os.Mkdir(l, 0o700)), d, l)
		}, false},
		{"library is something else", func(t *testing.T, tmp, _ string) {
			d := filepath.Join(tmp, fmt.Sprintf("heapcam-%d", hostile))
			l := filepath.Join(d, file)
			other := bytes.Repeat([]byte("x"), 1<<20)
			own(t, errors.Join(os.Mkdir(d, 0o700), os.WriteFile(l, other, 0o700)), d, l)
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			tmp, victim, j := stage(t)
			secret := filepath.Join(victim, "secret")
			if err := os.WriteFile(secret, []byte("of root"), 0o600); err != nil {
				t.Fatal(err)
			}
			c.trap(t, tmp, victim)
			var path string
			var err error
			within(t, func() { path, err = libraryFor(j, lib) })
			if (err == nil) != c.ok {
				t.Fatalf("library: %s %v", path, err)
			}
			if err != nil && jvms.ObstacleOf(err) != jvms.Unrecordable {
				t.Errorf("kind %d: %v", jvms.ObstacleOf(err), err)
			}
			if c.ok {
				file = filepath.Base(path)
				st, serr := os.Lstat(path)
				b, rerr := os.ReadFile(path)
				if serr != nil || rerr != nil || !bytes.Equal(b, lib) || !strings.HasPrefix(file, name) {
					t.Fatalf("library: %v %v %v", st, serr, rerr)
				}
				if !st.Mode().IsRegular() || owner(st) != hostile || st.Mode().Perm()&0o022 != 0 {
					t.Errorf("library: %v", st)
				}
				again, err := libraryFor(j, lib) // what is mapped stays the same file
				st2, _ := os.Lstat(again)
				if err != nil || !os.SameFile(st, st2) {
					t.Errorf("a library that was there is another file: %v", err)
				}
			}
			_, err = ringDirIn(j, "/nonexistent", folderOf(j), true)
			if (err == nil) != (c.ok || strings.HasPrefix(c.name, "library")) {
				t.Errorf("ring: %v", err)
			}
			left, _ := os.ReadDir(victim)
			b, _ := os.ReadFile(secret)
			st, err := os.Stat(secret)
			if len(left) != 1 || string(b) != "of root" || err != nil || st.Mode().Perm() != 0o600 || owner(st) != 0 {
				t.Errorf("something of others was touched: %v %q %v", left, b, st)
			}
		})
	}
}

// TestPlaceRace swaps the folder for a link, over and over, while the library and the ring's folder are made: nothing
// comes to stand where the link leads, and nothing there changes its owner.
func TestPlaceRace(t *testing.T) {
	tmp, victim, j := stage(t)
	lib := bytes.Repeat([]byte("library"), 1000)
	dir := filepath.Join(tmp, folderOf(j))
	own(t, os.Mkdir(dir+".real", 0o700), dir+".real")
	own(t, os.Symlink(victim, dir+".link"), dir+".link")
	var swapping sync.WaitGroup
	over := make(chan struct{})
	swapping.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			default:
			}
			switch i % 3 {
			case 0:
				os.Rename(dir+".real", dir)
			case 1:
				exchange(dir, dir+".link")
			case 2:
				exchange(dir, dir+".link")
				os.Rename(dir, dir+".real")
			}
		}
	})
	placed, refused := 0, 0
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		if _, err := libraryFor(j, append(lib, byte(placed), byte(placed>>8))); err == nil {
			placed++
		} else {
			refused++
		}
		ringDirIn(j, "/nonexistent", folderOf(j), true)
	}
	close(over)
	swapping.Wait()
	left, err := os.ReadDir(victim)
	st, serr := os.Stat(victim)
	if err != nil || serr != nil || len(left) > 0 || owner(st) != 0 || st.Mode().Perm() != 0o700 {
		t.Errorf("the link was followed: %v %v %v", left, st, err)
	}
	t.Logf("%d placed, %d refused", placed, refused)
}

// TestNoFolderIsLeftBehind demands that where the JVM's user cannot make a folder, and root may not give one away (the
// unit has no CAP_CHOWN), none is left: a folder of root would block that user later.
func TestNoFolderIsLeftBehind(t *testing.T) {
	tmp, _, j := stage(t)
	if err := os.Chmod(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // not unlocked: the thread ends with this test
	header, had := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	err := unix.Capget(&header, &had[0])
	less := had
	less[0].Effective &^= 1 << unix.CAP_CHOWN
	if err = errors.Join(err, unix.Capset(&header, &less[0])); err != nil {
		t.Fatal(err)
	}
	if _, err := libraryFor(j, []byte("library")); err == nil {
		t.Error("there is no place for it")
	}
	if err := unix.Capset(&header, &had[0]); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
	if err := os.Chmod(tmp, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if _, err := libraryFor(j, []byte("library")); err != nil {
		t.Error(err)
	}
}

// within fails the test where f blocks.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan bool)
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it blocks")
	}
}
