package jvms

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/procfs"
)

const sleeper = `package org.example; public class Sleeper {
	public static void main(String[] a) throws Exception { System.out.println("up"); Thread.sleep(600000); }
}`

func java(t *testing.T, major string) string {
	m, _ := filepath.Glob("/usr/lib/jvm/*-" + major + "-*/bin/java")
	if len(m) == 0 {
		t.Skipf("not run: JDK %s", major)
	}
	return m[0]
}

func compiled(t *testing.T) string {
	dir := t.TempDir()
	src := filepath.Join(dir, "Sleeper.java")
	if err := os.WriteFile(src, []byte(sleeper), 0o644); err != nil {
		t.Fatal(err)
	}
	home, err := exec.Command("../../tools/jdk-home").Output()
	if err != nil {
		t.Skip("not run: JVMs (no JDK: tools/setup)")
	}
	javac := filepath.Join(strings.TrimSpace(string(home)), "bin", "javac")
	if out, err := exec.Command(javac, "--release", "11", "-d", dir, src).CombinedOutput(); err != nil {
		t.Skipf("not run: javac: %v %s", err, out)
	}
	return dir
}

func launch(t *testing.T, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(cmd) })
	b := make([]byte, 2)
	if _, err := out.Read(b); err != nil || string(b) != "up" {
		t.Fatalf("%v did not come up: %v %q", args, err, b)
	}
	return cmd
}

func stop(cmd *exec.Cmd) {
	// An orderly exit takes its PerfData away. SIGINT is ignored below a shell in the background.
	cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		cmd.Process.Kill()
		<-done
	}
}

func TestList(t *testing.T) {
	dir := compiled(t)
	for _, c := range []struct {
		major, gc  string
		problem    Problem
		perf       bool
		opts       []string
		recordable bool
	}{
		{"17", "Serial", OK, true, nil, true},
		{"17", "Parallel", OK, true, nil, true},
		{"17", "G1", NoPerfData, false, []string{"-XX:-UsePerfData"}, false},
		{"17", "Epsilon", OK, true, []string{"-XX:+UnlockExperimentalVMOptions"}, true},
		{"17", "Z", OK, true, nil, true},
		{"17", "Serial", AttachDisabled, true, []string{"-XX:+DisableAttachMechanism"}, false},
		{"25", "G1", OK, true, nil, true},
		{"25", "Z", OK, true, nil, true},
		{"25", "Shenandoah", OK, true, nil, true},
	} {
		t.Run(fmt.Sprint(c.major, c.gc, c.opts), func(t *testing.T) {
			args := append([]string{"-Xmx64m", "-Xlog:disable"}, c.opts...)
			args = append(args, "-XX:+Use"+c.gc+"GC", "-cp", dir, "org.example.Sleeper", "secret")
			cmd := launch(t, java(t, c.major), args...)
			all, err := List()
			if err != nil {
				t.Fatal(err)
			}
			j, err := Find(all, fmt.Sprint(cmd.Process.Pid))
			if err != nil {
				t.Fatal(err)
			}
			if j.Name != "org.example.Sleeper" || fmt.Sprint(j.Major) != c.major || j.Collector != c.gc ||
				j.PerfData != c.perf || j.UID != os.Geteuid() || j.NSPID != lastNS(j.PID) || j.Container ||
				filepath.Base(j.LibJVM) != "libjvm.so" || j.Recorded {
				t.Errorf("%+v", j)
			}
			if v := Doctor(j); v.Recordable != c.recordable || v.Problem != c.problem {
				t.Errorf("%+v", v)
			}
		})
	}
}

func lastNS(pid int) int {
	j := JVM{PID: pid, NSPID: pid}
	if p, err := procfs.Open(pid); err == nil {
		j.status(p)
		p.Close()
	}
	return j.NSPID
}

func TestNotAJVM(t *testing.T) {
	_, err := Resolve(fmt.Sprint(os.Getpid()))
	var none *NotFoundError
	if !errors.As(err, &none) || !none.Process {
		t.Errorf("this test: %v", err)
	}
	if _, err = Inspect(1 << 23); !errors.As(err, &none) || none.Process {
		t.Errorf("no process: %v", err)
	}
}

// TestHostilePerfData: what stands in the place of PerfData may be anything.
func TestHostilePerfData(t *testing.T) {
	tmp := t.TempDir()
	dir := filepath.Join(tmp, "hsperfdata_x")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	os.Symlink("/etc/passwd", filepath.Join(dir, "1"))
	os.Symlink(dir, filepath.Join(tmp, "hsperfdata_y"))
	os.WriteFile(filepath.Join(dir, "2"), []byte("x"), 0o600)
	exec.Command("mkfifo", filepath.Join(dir, "3")).Run()
	d, err := os.Open(tmp)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, c := range []struct {
		dir, name string
		uid       int
		ok        bool
	}{
		{"hsperfdata_x", "1", 0, false},
		{"hsperfdata_x", "2", os.Geteuid(), true},
		{"hsperfdata_x", "2", os.Geteuid() + 1, false},
		{"hsperfdata_x", "3", os.Geteuid(), false},
		{"hsperfdata_y", "2", os.Geteuid(), false},
	} {
		if _, err := readOwned(int(d.Fd()), c.dir, c.name, c.uid); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestWatch(t *testing.T) {
	dir := compiled(t)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	type change struct{ added, ended []JVM }
	changes := make(chan change, 64)
	ended := make(chan error, 1)
	go func() { ended <- Watch(ctx, func(a, g []JVM) { changes <- change{a, g} }) }()
	cmd := launch(t, java(t, "17"), "-XX:+UseSerialGC", "-cp", dir, "org.example.Sleeper")
	pid := cmd.Process.Pid
	wait := func(what string, in func(change) []JVM) {
		for {
			select {
			case c := <-changes:
				for _, j := range in(c) {
					if j.PID == pid {
						return
					}
				}
			case <-ctx.Done():
				t.Fatalf("%s was not reported", what)
			}
		}
	}
	wait("coming", func(c change) []JVM { return c.added })
	stop(cmd)
	wait("going", func(c change) []JVM { return c.ended })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestApart demands that what has a root folder of its own counts as a container, and what has a mount namespace
// alone does not.
func TestApart(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not run: a process with another root folder (needs root)")
	}
	for name, c := range map[string]struct {
		attr syscall.SysProcAttr
		want bool
	}{
		"nothing":   {syscall.SysProcAttr{}, false},
		"namespace": {syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}, false},
		"root":      {syscall.SysProcAttr{Chroot: "/usr"}, true}, // has bin, lib and lib64, as / has
	} {
		cmd := &exec.Cmd{Path: "/bin/sleep", Args: []string{"sleep", "600"}, Dir: "/", SysProcAttr: &c.attr}
		if err := cmd.Start(); err != nil {
			t.Skipf("not run: a process with %s of its own (%v)", name, err)
		}
		if got := apart(cmd.Process.Pid); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
}

// TestDeletedRing: a ring whose file was deleted is one only if the JVM maps no other ring, as it does when a ring
// grows. A memfd has no name at all.
func TestDeletedRing(t *testing.T) {
	const (
		gone  = "7f0-7f1 rw-s 00000000 00:1 1  /dev/shm/heapcam-7/heapcam-1-2.ring (deleted)\n"
		there = "7f1-7f2 rw-s 00000000 00:1 2  /dev/shm/heapcam-7/heapcam-1-2.ring\n"
		memfd = "7f2-7f3 rw-s 00000000 00:1 3  /memfd:heapcam.ring (deleted)\n"
	)
	for maps, want := range map[string]bool{"": false, there: false, memfd: false, gone: true, gone + there: false} {
		var j JVM
		if j.fromMaps([]byte(maps)); j.ringDeleted != want || j.Recorded != (maps != "") {
			t.Errorf("%q: %+v", maps, j)
		}
	}
}

// TestWanted: each process is asked for, and one that is not wanted is not inspected.
func TestWanted(t *testing.T) {
	self := false
	all, err := list(func(pid int) bool {
		self = self || pid == os.Getpid()
		return false
	}, nil)
	if err != nil || len(all) > 0 || !self {
		t.Errorf("%d JVMs, error %v, asked for this process: %v", len(all), err, self)
	}
}
