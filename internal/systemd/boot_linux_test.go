package systemd

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// host is a systemd that runs in a container on a throw-away copy of this machine's file system.
type host struct {
	t    *testing.T
	dir  string // its root, as we see it
	init string // its systemd's pid, as we count
	at   time.Time
}

// logf tells how long the test has run.
func (h *host) logf(what string) { h.t.Logf("%6.2f s: %s", time.Since(h.at).Seconds(), what) }

// need skips the test where it cannot run, and tells why.
func need(t *testing.T, what string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not run: " + what + " (not root)")
	}
	for _, p := range []string{"systemd-nspawn", "setfattr", "nsenter", "pgrep", "systemd-run"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("not run: %s (no %s; Debian packages: systemd-container attr procps)", what, p)
		}
	}
}

func run(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// boot boots a host; the test's end stops it.
func boot(t *testing.T, what string) *host {
	t.Helper()
	need(t, what)
	base, err := os.MkdirTemp("", "heapcam-systemd-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	if err := run("mount", "-t", "tmpfs", "-o", "size=1g,mode=755", "tmpfs", base); err != nil {
		t.Skipf("not run: %s (this machine does not let us mount: %v)", what, err)
	}
	t.Cleanup(func() { run("umount", "-l", base) })
	upper, work, root := filepath.Join(base, "u"), filepath.Join(base, "w"), filepath.Join(base, "m")
	for _, d := range []string{upper, work, root} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// Opaque folders hide what this machine would start.
	hide := []string{"etc/systemd/system", "etc/init.d", "var/lib/systemd/deb-systemd-helper-enabled",
		"var/lib/heapcam"}
	for _, l := range "0123456S" {
		hide = append(hide, "etc/rc"+string(l)+".d")
	}
	for _, d := range hide {
		p := filepath.Join(upper, d)
		if err := os.MkdirAll(p, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := run("setfattr", "-n", "trusted.overlay.opaque", "-v", "y", p); err != nil {
			t.Skipf("not run: %s (%v)", what, err)
		}
	}
	if err := os.WriteFile(filepath.Join(upper, "etc/fstab"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run("mount", "-t", "overlay", "overlay", "-o", "lowerdir=/,upperdir="+upper+",workdir="+work,
		root); err != nil {
		t.Skipf("not run: %s (no overlay: %v)", what, err)
	}
	t.Cleanup(func() { run("umount", "-l", root) })
	// by which images of containers forbid packages to start services
	os.Remove(filepath.Join(root, "usr/sbin/policy-rc.d"))
	os.Remove(filepath.Join(root, "var/lib/man-db/auto-update"))

	var log bytes.Buffer
	nspawn := exec.Command("systemd-nspawn", "--quiet", "--boot", "--directory="+root,
		"--machine=heapcam"+strconv.Itoa(os.Getpid()), "--register=no",
		"--keep-unit", "--private-network", "--link-journal=no", "--console=pipe")
	nspawn.Stdout, nspawn.Stderr = &log, &log
	nspawn.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	nspawn.WaitDelay = time.Second
	if err := nspawn.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { nspawn.Wait(); close(ended) }()
	h := &host{t: t, dir: root, at: time.Now()}
	t.Cleanup(func() {
		if pid, _ := strconv.Atoi(h.init); pid > 1 {
			syscall.Kill(pid, 34+14) // SIGRTMIN+14: power off at once
		}
		select {
		case <-ended:
		case <-time.After(8 * time.Second):
			nspawn.Process.Kill()
			<-ended
		}
	})
	h.eventually("systemd has booted", 30*time.Second, func() error {
		select {
		case <-ended:
			t.Skipf("not run: %s (systemd-nspawn cannot boot here: %s)", what, log.String())
		default:
		}
		if h.init == "" {
			out, _ := exec.Command("pgrep", "-P", strconv.Itoa(nspawn.Process.Pid), "-x", "systemd").Output()
			h.init = strings.TrimSpace(string(out))
		}
		if h.init == "" {
			return fmt.Errorf("no systemd below nspawn: %s", log.String())
		}
		out, _ := h.try("systemctl", "is-system-running")
		if s := strings.TrimSpace(out); s != "running" && s != "degraded" {
			return fmt.Errorf("it is %q", s)
		}
		return nil
	})
	return h
}

// try runs a command on the host and gives what it wrote, stdout before stderr.
func (h *host) try(args ...string) (string, error) {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	root := "/proc/" + h.init + "/root"
	c := exec.CommandContext(ctx, "nsenter", append([]string{"-t", h.init, "-a", "--root=" + root, "--wd=" + root,
		"env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C",
		"DEBIAN_FRONTEND=noninteractive"}, args...)...)
	c.WaitDelay = time.Second
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	return out.String() + errs.String(), err
}

// do is try for what must work.
func (h *host) do(args ...string) string {
	h.t.Helper()
	out, err := h.try(args...)
	if err != nil {
		h.t.Fatalf("%s: %v\n%s\n%s", strings.Join(args, " "), err, out, h.journal())
	}
	return out
}

// refuses runs what must end with that exit code and that text.
func (h *host) refuses(code int, text string, args ...string) {
	h.t.Helper()
	out, err := h.try(args...)
	var e *exec.ExitError
	if e, _ = err.(*exec.ExitError); e == nil || e.ExitCode() != code || !strings.Contains(out, text) {
		h.t.Errorf("%s: %v, wanted status %d and %q:\n%s", strings.Join(args, " "), err, code, text, out)
	}
}

func (h *host) journal() string {
	out, _ := h.try("journalctl", "--no-pager", "-o", "short-precise", "-n", "60", "-u", "heapcam", "-u", "jvm*")
	return out
}

// show gives a property of the service.
func (h *host) show(prop string) string {
	out, _ := h.try("systemctl", "show", "heapcam", "-P", prop)
	return strings.TrimSpace(out)
}

func (h *host) exists(path string) bool {
	_, err := os.Lstat(filepath.Join(h.dir, path))
	return err == nil
}

func (h *host) eventually(what string, within time.Duration, f func() error) {
	h.t.Helper()
	begun := time.Now()
	for {
		err := f()
		if err == nil {
			h.t.Logf("%6.2f s until %s", time.Since(begun).Seconds(), what)
			return
		}
		if time.Since(begun) > within {
			h.t.Fatalf("%s: not within %v: %v\n%s", what, within, err, h.journal())
		}
		time.Sleep(50 * time.Millisecond)
	}
}
