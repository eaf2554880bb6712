package e2e

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/heapcam/heapcam/internal/faultfs"
	"github.com/heapcam/heapcam/shmring"
)

// TestDeadDisk has the disk of the recordings hang as a broken one does: whoever waits for it cannot be ended. Every
// verb that somebody needs then ends by itself all the same, and says what it could not read; the JVM runs on, pauses,
// resumes and detaches; when the disk is back nothing is wrong on it.
func TestDeadDisk(t *testing.T) {
	if !full {
		t.Skip("not run: a minute of a disk that hangs (make test-full)")
	}
	needReader(t)
	m := faultfs.New(t)
	must := func(args ...string) { t.Helper(); mustRun(t, args...) }
	image, mnt := filepath.Join(m.Dir, "image"), t.TempDir()
	must("truncate", "-s", "256M", image)
	must("mkfs.ext4", "-q", image)
	var hang chan struct{}
	var once sync.Once
	release := func() {
		m.Fail(nil)
		if hang != nil {
			once.Do(func() { close(hang) })
		}
	}
	mounted := false
	mount := func() {
		t.Helper()
		if out, err := exec.Command("mount", "-o", "loop", image, mnt).CombinedOutput(); err != nil {
			t.Skipf("not run: no loop devices here: %v: %s", err, out)
		}
		mounted = true
	}
	t.Cleanup(func() {
		release()
		if mounted {
			must("umount", mnt)
		}
	})
	mount()

	// What was recorded before, and nobody has in memory.
	file := filepath.Join(t.TempDir(), "end")
	old := program{major: 17, gc: "Serial", heap: "64m", main: "Until", args: []string{file, "20000", "5"}}
	d := newDaemon(t)
	d.out = filepath.Join(mnt, "rec")
	d.start(t)
	record := func(p program) *running {
		t.Helper()
		r := p.plain(t)
		await(t, "pid", func() bool { return r.pid() > 0 })
		if errs, code := d.attach(t, r.pidText()); code != 0 {
			t.Fatalf("attach: status %d: %s", code, errs)
		}
		await(t, "collections", func() bool { s := d.status(t).JVMs; return len(s) > 0 && s[0].Collections > 3 })
		return r
	}
	r := record(old)
	before := d.status(t).JVMs[0].Dir
	r.end(t, file)
	d.stop(t)
	must("umount", mnt)
	mounted = false
	mount()
	os.Remove(file)
	d.start(t)
	r = record(program{major: 17, gc: "G1", heap: "64m", main: "Until", args: []string{file, "20000", "5"}})
	live := d.status(t).JVMs[0]

	// What the kernel still has in memory of the older recording needs no disk.
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0o200); err != nil {
		t.Skipf("not run: %v", err)
	}
	hang = make(chan struct{})
	defer release() // before the agent is ended: a process that waits for the disk cannot be
	m.Fail(func(op faultfs.Op, _ string) syscall.Errno {
		<-hang
		return 0
	})
	var out, errs string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("status, the last time:\n%s%s", out, errs)
		}
	})
	await(t, "the agent tells of it", func() bool {
		out, errs, _ = heapcam(t, "status", "--socket", d.sock, "--out", d.out)
		return strings.Contains(out, "the disk has not answered for ") &&
			strings.Contains(errs, "the disk has not answered for 5 s: recordings in "+d.out)
	})
	says := func(code int, text string, args ...string) {
		t.Helper()
		out, errs, c := heapcam(t, args...)
		if c != code || !strings.Contains(errs, text) {
			t.Errorf("heapcam %v: status %d, want %d and %q\n%s%s", args, c, code, text, out, errs)
		}
	}
	says(1, "the disk has not answered for 20 s: ", "cost", before)
	says(1, "the disk has not answered for 20 s: ", "cost", "--out", d.out, live.ID)
	bundle := filepath.Join(t.TempDir(), "b.tar.gz")
	says(0, "recordings.json, or a part of it: the disk has not answered for 5s: "+d.out, "support-bundle", "-o",
		bundle, "--out", d.out, "--socket", d.sock)
	has := members(t, bundle)
	if !strings.Contains(has["status.json"], live.ID) || !strings.Contains(has["errors.txt"], d.out) ||
		has["versions.json"] == "" || has["doctor.json"] == "" {
		t.Errorf("the bundle lacks something: %v", has["errors.txt"])
	}
	says(0, "paused Until", "pause", "--socket", d.sock, r.pidText())
	await(t, "it is paused", func() bool { return d.ring(t).State == shmring.StatePaused })
	says(0, "resumed Until", "resume", "--socket", d.sock, r.pidText())
	await(t, "it goes on", func() bool { return d.ring(t).State == shmring.StateRecording })
	says(0, "stopped recording Until", "detach", "--socket", d.sock, r.pidText())
	await(t, "it is detached from", func() bool { return d.ring(t).State == shmring.StateDetached })
	r.end(t, file)

	// The agent cannot end before the disk lets it; it says that it wants to, and whoever asks it to stop learns so
	// from the service's manager.
	d.cmd.Process.Signal(syscall.SIGTERM)
	await(t, "the agent leaves the recording behind", func() bool {
		return strings.Contains(d.stderr.String(), "ends without closing recordings")
	})
	release()
	d.cmd.Wait()
	d.cmd = nil
	verify(t, before, 1)
	verify(t, live.Dir, 1)
}

func mustRun(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// members gives the texts of a support bundle.
func members(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(h.Name)] = string(b)
	}
}
