package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/probe"
)

// TestRunLoads starts JVMs below `heapcam run` that could not load the probe from this user's own folder, and would
// not start: they start, and are recorded.
func TestRunLoads(t *testing.T) {
	needRoot(t, "JVMs of another user, /tmp without programs", "setpriv", "unshare")
	t.Parallel()
	for name, c := range map[string]struct{ wrap, below []string }{
		"another user": {below: []string{"setpriv", "--reuid", "64127", "--regid", "64127", "--clear-groups"}},
		"noexec": {wrap: []string{"unshare", "--mount", "sh", "-c",
			`mount -t tmpfs -o noexec tmpfs "$TMPDIR" && mount -t tmpfs tmpfs /var/tmp && exec "$@"`, "sh"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, tmp := t.TempDir(), t.TempDir()
			t.Cleanup(func() { os.RemoveAll("/tmp/hsperfdata_64127") })
			end := filepath.Join(dir, "end")
			for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
				os.Chmod(d, 0o755)
			}
			os.Chmod(scratch, 0o755)
			line := append(append(c.wrap, tool, "run", "--out", filepath.Join(dir, "rec"), "--"), c.below...)
			line = append(line, filepath.Join(jdk(t, 17), "bin", "java"), "-Xmx64m", "-cp", classPath(t), "Until",
				end, "2000", "5")
			cmd := exec.Command(line[0], line[1:]...)
			cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR=")
			if c.wrap != nil {
				cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
			} else {
				x := t.TempDir() // root's alone
				cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR="+x)
			}
			out := &buffer{}
			cmd.Stdout, cmd.Stderr = out, out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(3*time.Second, func() { os.WriteFile(end, nil, 0o644) })
			defer time.AfterFunc(60*time.Second, func() { cmd.Process.Signal(os.Interrupt) }).Stop()
			if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "\ndone\n") ||
				!strings.Contains(out.String(), "heapcam: recorded Until ") {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}

// TestExitInTime measures how much longer a JVM runs than its CPU time, with the probe and without it. The two must
// agree: a JVM must not wait for the probe's thread at its exit. The best of a few runs counts, since the machine may
// be busy.
func TestExitInTime(t *testing.T) {
	for _, major := range []int{17, 25} {
		java, dir := filepath.Join(jdk(t, major), "bin", "java"), t.TempDir()
		b, err := probe.Library()
		if err != nil {
			t.Skip("not run: the exit of JVMs (the probe is not compiled)")
		}
		lib := filepath.Join(dir, "libheapcam.so")
		if err := os.WriteFile(lib, b, 0o700); err != nil {
			t.Fatal(err)
		}
		took := func(opts ...string) time.Duration {
			cmd := exec.Command(java, append(opts, "-Xmx64m", "-XX:+UseSerialGC", "-cp", classPath(t), "Collect",
				"0")...)
			begin := time.Now()
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			return time.Since(begin) - cmd.ProcessState.UserTime() - cmd.ProcessState.SystemTime()
		}
		with, without := time.Hour, time.Hour
		for i := 0; i < 30 && (i < 5 || with > without+35*time.Millisecond); i++ {
			without = min(without, took())
			with = min(with, took("-agentpath:"+lib+"=dir="+dir))
		}
		t.Logf("JDK %d: idle for %v with the probe, %v without", major, with, without)
		if with > without+35*time.Millisecond {
			t.Errorf("JDK %d: idle for %v with the probe, %v without", major, with, without)
		}
	}
}
