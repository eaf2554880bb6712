package jvms

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// rooted opens dir as a process' root folder.
func rooted(t *testing.T, dir string) int {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// within fails the test where f blocks.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan bool)
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: it blocks", what)
	}
}

// TestHostileRoot: a process may have anything in its root folder where a JVM has its /tmp and its JDK. Nothing
// blocks, nothing outside of that root is read, and no device or fifo is opened.
func TestHostileRoot(t *testing.T) {
	perf := perfFile(binary.LittleEndian, "sun.rt.javaCommand", "org.example.Outside")
	outside := t.TempDir()
	folder := filepath.Join(outside, perfFolder+"x")
	err := errors.Join(os.Mkdir(folder, 0o755), os.WriteFile(filepath.Join(folder, "1"), perf, 0o600),
		os.WriteFile(filepath.Join(outside, "release"), []byte("JAVA_VERSION=\"99\"\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for name, tmp := range map[string]func(path string) error{
		"fifo":           func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"link out":       func(p string) error { return os.Symlink(outside, p) },
		"link to device": func(p string) error { return os.Symlink("/dev/zero", p) },
		"link to /proc":  func(p string) error { return os.Symlink("/proc/self/fd", p) },
		"link to a fifo": func(p string) error {
			return errors.Join(syscall.Mkfifo(p+"2", 0o600), os.Symlink(filepath.Base(p)+"2", p))
		},
		"nothing":         func(string) error { return nil },
		"a file":          func(p string) error { return os.WriteFile(p, perf, 0o600) },
		"link to a level": func(p string) error { return os.Symlink("../../../../../.."+outside, p) },
	} {
		dir := t.TempDir()
		home := filepath.Join(dir, "jdk/lib/server")
		err := errors.Join(tmp(filepath.Join(dir, "tmp")), os.MkdirAll(home, 0o755),
			tmp(filepath.Join(dir, "jdk/release")), tmp(filepath.Join(dir, "dev")))
		if err != nil {
			t.Fatal(err)
		}
		if name == "link out" {
			os.Remove(filepath.Join(dir, "jdk/release"))
			os.Symlink(filepath.Join(outside, "release"), filepath.Join(dir, "jdk/release"))
		}
		root := rooted(t, dir)
		j := JVM{PID: 1, NSPID: 1, UID: os.Geteuid(), LibJVM: "/jdk/lib/server/libjvm.so", shmFree: -1}
		within(t, name, func() {
			if c := j.perf(root); c != nil {
				t.Errorf("%s: PerfData from outside of the root: %v", name, c)
			}
			if j.fromRelease(root); j.Major != 0 {
				t.Errorf("%s: the version is from outside of the root: %d", name, j.Major)
			}
			j.room(root)
		})
	}
}

// TestHostileRootOfAProcess: a process that looks like a JVM and whose /tmp is a fifo does not keep others from being
// listed.
func TestHostileRootOfAProcess(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not run: a process with another root folder (needs root)")
	}
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "tmp"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(chrootOf, dir)
	within(t, "a fifo as /tmp", func() {
		if j := fakeJVM(t, "17.0.1"); j.Name != "org.example.Main" {
			t.Errorf("%+v", j)
		}
	})
}

// TestManyFolders: however many folders of PerfData there are, and whatever links look like such, few are watched.
func TestManyFolders(t *testing.T) {
	base := t.TempDir()
	for i := range maxFolders + 10 {
		if err := os.Mkdir(filepath.Join(base, fmt.Sprintf("%s%d", perfFolder, i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(base, perfFolder+"-link") // its name comes first
	if err := os.Symlink("/", link); err != nil {
		t.Fatal(err)
	}
	added := map[string]bool{}
	f := folders{base: base, add: func(p string) error { added[p] = true; return nil }, watched: map[string]bool{}}
	f.addAll()
	f.addAll()
	if len(added) != maxFolders+1 || added[link] {
		t.Errorf("%d folders are watched, the link: %v", len(added), added[link])
	}
}

// TestEventsDoNotListAllTheTime: files that somebody makes and removes all the time cause few listings.
func TestEventsDoNotListAllTheTime(t *testing.T) {
	createdPerfData := fsnotify.Event{Name: "/tmp/hsperfdata_x/1", Op: fsnotify.Create}
	w := watcher{folders: folders{base: "/tmp", watched: map[string]bool{}}, timer: time.NewTimer(time.Hour)}
	w.tired = time.Now().Add(time.Hour)
	w.event(createdPerfData)
	select {
	case <-w.timer.C:
		t.Error("a listing that took long is followed by the next one at once")
	case <-time.After(2 * settle):
	}
	w.tired, w.soon = time.Time{}, false
	w.event(createdPerfData)
	select {
	case <-w.timer.C:
	case <-time.After(10 * time.Second):
		t.Error("PerfData appears, and nothing is listed")
	}
}
