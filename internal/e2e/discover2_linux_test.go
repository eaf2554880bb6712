package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/session"
)

// discoverer is a daemon that attaches to the JVMs of one test alone.
func discoverer(t *testing.T, flags ...string) (d *daemon, mark string) {
	t.Helper()
	dir := t.TempDir()
	mark = "-Dheapcam.test=" + filepath.Base(filepath.Dir(dir))
	conf := filepath.Join(dir, "heapcam.yaml")
	if err := os.WriteFile(conf,
		fmt.Appendf(nil, "discover: true\nrules:\n  - match: {flag: \"%s\"}\n"+
			"  - match: {}\n    record: false\n", mark), 0o600); err != nil {
		t.Fatal(err)
	}
	return newDaemon(t, append(flags, "--config", conf)...), mark
}

// of gives what the agent says about a JVM.
func (d *daemon) of(t *testing.T, pid int) (s session.Status, o api.Other) {
	t.Helper()
	st := d.status(t)
	for _, s = range st.JVMs {
		if s.PID == pid {
			return s, o
		}
	}
	for _, o = range st.Others {
		if o.PID == pid {
			return session.Status{}, o
		}
	}
	return session.Status{}, api.Other{}
}

// TestToolOptions starts a JVM that cannot be attached to with the line that doctor prints: an agent that discovers
// finds its ring and records it. One without that line is listed with reason and remedy.
func TestToolOptions(t *testing.T) {
	needReader(t)
	d, mark := discoverer(t)
	d.start(t)
	c := exec.Command(tool, "doctor", "--java-tool-options")
	c.Env = append(os.Environ(), "JAVA_TOOL_OPTIONS=-Dheapcam.kept=1", "HEAPCAM_DEPTH=full")
	out, err := c.Output()
	line := strings.TrimSpace(string(out))
	if err != nil || !strings.HasPrefix(line, "JAVA_TOOL_OPTIONS=-Dheapcam.kept=1 -agentpath:") ||
		!strings.Contains(line, "depth=full") || strings.Contains(line, "\n") {
		t.Fatalf("%v: %s", err, out)
	}
	file := filepath.Join(t.TempDir(), "end")
	p := program{major: 17, gc: "G1", heap: "32m", main: "Until", args: []string{file, "2000", "10"},
		opts: []string{mark, "-XX:+DisableAttachMechanism"}}
	closed := p.plain(t)
	t.Setenv("JAVA_TOOL_OPTIONS", strings.TrimPrefix(line, "JAVA_TOOL_OPTIONS="))
	r := p.plain(t)
	os.Unsetenv("JAVA_TOOL_OPTIONS")
	await(t, "pids", func() bool { return r.pid() > 0 && closed.pid() > 0 })
	var s session.Status
	await(t, "a recording", func() bool {
		s, _ = d.of(t, r.pid())
		return s.Phase == session.Recording && s.LastGC > 3
	})
	if s.Depth != "full" {
		t.Errorf("depth %s", s.Depth)
	}
	await(t, "the verdict on the other", func() bool {
		_, o := d.of(t, closed.pid())
		return strings.Contains(o.Reason, "attaching is disabled") && strings.Contains(o.Remedy, "--java-tool-options")
	})
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.cmd.Wait()
	closed.cmd.Wait()
	await(t, "the end", func() bool { s, _ = d.of(t, r.pid()); return s.Phase.Over() })
	d.stop(t)
	verify(t, s.Dir, 1)
}

// TestDiscoverPrivate: JVMs in a mount namespace of their own, whose /tmp nobody here sees, are found as soon as
// others, and what cannot be recorded there is listed with reason and remedy.
func TestDiscoverPrivate(t *testing.T) {
	needReader(t)
	needRoot(t, "JVMs in namespaces of their own", "unshare", "mount")
	if out, err := exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "none", "/tmp").CombinedOutput(); err != nil {
		t.Skipf("not run: JVMs in namespaces of their own (%v: %s)", err, out)
	}
	if _, err := os.Stat("/var/tmp/heapcam-0"); err != nil {
		t.Cleanup(func() { os.RemoveAll("/var/tmp/heapcam-0") })
	}
	t.Setenv("TMPDIR", "/var/tmp")
	src := classPath(t)
	d, mark := discoverer(t)
	d.start(t)
	dir := t.TempDir()
	classes := filepath.Join(dir, "classes")
	if err := os.CopyFS(classes, os.DirFS(src)); err != nil {
		t.Fatal(err)
	}
	end := filepath.Join(dir, "end")
	var all []*running
	for _, c := range []struct{ mounts, reason string }{
		{"mount -t tmpfs none /tmp", ""},
		{"mount -t tmpfs -o ro none /tmp", "/tmp is mounted read-only"},
		{"mount -t tmpfs -o noexec none /tmp && mount --bind /var/tmp /var/tmp && mount -o remount,bind,noexec " +
			"/var/tmp && " +
			"mount -t tmpfs -o noexec none /run && mount -t tmpfs -o noexec none /dev/shm", "noexec"},
	} {
		p := program{major: 17, gc: "Serial", heap: "32m", main: "Until", args: []string{end, "2000", "5"},
			classes: classes,
			opts:    []string{mark}}
		begun := time.Now()
		r := p.plain(t, "unshare", "-m", "sh", "-c", c.mounts+` && exec "$@"`, "sh")
		all = append(all, r)
		pid := child(t, r)
		if c.reason != "" {
			await(t, "the verdict", func() bool {
				_, o := d.of(t, pid)
				return strings.Contains(o.Reason, c.reason) && o.Remedy != ""
			})
			continue
		}
		await(t, "a recording", func() bool { s, _ := d.of(t, pid); return s.Phase == session.Recording })
		t.Logf("recorded %v after its start", time.Since(begun))
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if err := r.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	d.stop(t)
}
