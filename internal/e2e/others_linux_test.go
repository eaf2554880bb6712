package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/heapcam/heapcam/agent/session"
)

// needRoot skips what only root can try, with the programs that it takes.
func needRoot(t *testing.T, what string, programs ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skipf("not run: %s (needs root)", what)
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("not run: %s (there is no %s)", what, p)
		}
	}
}

// child finds the JVM below a process that wraps it.
func child(t *testing.T, r *running) (pid int) {
	t.Helper()
	await(t, "the JVM", func() bool {
		if r.pid() == 0 { // it has not begun
			return false
		}
		at := []int{r.cmd.Process.Pid}
		for len(at) > 0 {
			p := at[0]
			at = at[1:]
			if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", p)); filepath.Base(exe) == "java" {
				pid = p
				return true
			}
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p, p))
			for _, f := range strings.Fields(string(b)) {
				n, _ := strconv.Atoi(f)
				at = append(at, n)
			}
		}
		return false
	})
	t.Cleanup(func() {
		if r.cmd.ProcessState == nil {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return pid
}

// recordedBy has a daemon record the JVM pid until the program ends, and verifies what came of it.
func recordedBy(t *testing.T, d *daemon, r *running, pid int, end string) session.Status {
	t.Helper()
	errs, code := d.attach(t, strconv.Itoa(pid))
	if code != 0 {
		t.Fatalf("attach: status %d: %s", code, errs)
	}
	find := func() (s session.Status) {
		for _, s := range d.status(t).JVMs {
			if s.PID == pid {
				return s
			}
		}
		return s
	}
	n := r.stops()
	await(t, "collections", func() bool { return r.stops() >= n+3 && find().Collections >= 3 })
	if err := os.WriteFile(end, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Wait(); err != nil || !strings.HasSuffix(r.stdout.String(), "done\n") {
		t.Fatalf("the JVM: %v", err)
	}
	await(t, "the end of the recording", func() bool { return find().Phase.Over() })
	s := find()
	verify(t, s.Dir, 1)
	return s
}

// TestOtherUser records JVMs of another user, who owns the library and the ring and nothing else; without rights the
// answer is one line.
func TestOtherUser(t *testing.T) {
	t.Parallel()
	needReader(t)
	needRoot(t, "JVMs of other users", "setpriv")
	const uid = 64123 // nobody has this one, so that nothing stands in /tmp that is not of this test
	t.Cleanup(func() {
		os.RemoveAll(fmt.Sprintf("/tmp/heapcam-%d", uid))
		os.RemoveAll(fmt.Sprintf("/tmp/hsperfdata_%d", uid))
		os.RemoveAll(fmt.Sprintf("/dev/shm/heapcam-%d", uid)) // of an agent that could not begin
	})
	wrap := []string{"setpriv", "--reuid", strconv.Itoa(uid), "--regid", strconv.Itoa(uid), "--clear-groups"}
	d := newDaemon(t, "--max-trace-size", "64MiB", "--emergency", "off")
	d.start(t)
	eachPair(t, []int{17, 25}, []string{"G1"}, func(t *testing.T, major int, gc string) {
		end := filepath.Join(t.TempDir(), "end")
		p := program{major: major, gc: gc, heap: "64m", main: "Until", args: []string{end, "20000", "12"}}
		r := p.plain(t, wrap...)
		pid := child(t, r)
		s := recordedBy(t, d, r, pid, end)
		st, err := os.Stat(s.Dir)
		if err != nil || st.Sys().(*syscall.Stat_t).Uid != 0 || st.Mode().Perm()&0o077 != 0 {
			t.Errorf("the recording must be the agent's alone: %v, %v", st.Mode(), err)
		}
	})
	t.Run("record", func(t *testing.T) {
		end := filepath.Join(t.TempDir(), "end")
		p := program{major: 17, gc: "Parallel", heap: "64m", main: "Until", args: []string{end, "20000", "12"}}
		r := p.plain(t, wrap...)
		pid := child(t, r)
		c := exec.Command(tool, "record", strconv.Itoa(pid), "--out", d.out)
		errs := &buffer{}
		c.Stderr = errs
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		await(t, "recording", func() bool { return strings.Contains(errs.String(), "recording Until") })
		n := r.stops()
		await(t, "collections", func() bool { return r.stops() >= n+3 })
		c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			t.Fatalf("record: %v\n%s", err, errs.String())
		}
		verify(t, (&running{stderr: errs}).recorded(t).dir, 1)
		n = r.stops()
		await(t, "the JVM runs on", func() bool { return r.stops() >= n+2 })
		os.WriteFile(end, nil, 0o644)
		r.cmd.Wait()
	})
	t.Run("no rights", func(t *testing.T) {
		end := filepath.Join(t.TempDir(), "end")
		p := program{major: 17, gc: "G1", heap: "64m", main: "Until", args: []string{end, "2000", "1"}}
		r := p.plain(t)
		pid := child(t, r)
		c := exec.Command(wrap[0], append(wrap[1:], tool, "record", strconv.Itoa(pid), "--out",
			filepath.Join(filepath.Dir(r.gclog), "rec"))...)
		c.Env = append(os.Environ(), "XDG_RUNTIME_DIR=")
		out, err := c.CombinedOutput()
		if c.ProcessState.ExitCode() != 4 || strings.Count(string(out), "\n") != 1 {
			t.Errorf("%v: %s", err, out)
		}
		os.WriteFile(end, nil, 0o644)
		r.cmd.Wait()
	})
	t.Run("unwritable", func(t *testing.T) {
		end := filepath.Join(t.TempDir(), "end")
		p := program{major: 17, gc: "G1", heap: "64m", main: "Until", args: []string{end, "2000", "1"}}
		r := p.plain(t, wrap...)
		pid := child(t, r)
		locked := t.TempDir() // ours, 0755: the other user cannot write to it
		for _, c := range []struct {
			code int
			args []string
		}{
			{4, []string{"record", strconv.Itoa(pid), "--out", filepath.Join(locked, "rec")}},
			{125, []string{"run", "--out", filepath.Join(locked, "rec"), "--", "true"}},
			{4, []string{"agent", "--out", filepath.Join(locked, "rec"), "--socket",
				filepath.Join(filepath.Dir(r.gclog), "s")}},
		} {
			cmd := exec.Command(wrap[0], append(append(wrap[1:], tool), c.args...)...)
			cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR=")
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != c.code || strings.Count(string(out), "\n") != 1 ||
				!strings.Contains(string(out), locked) {
				t.Errorf("%v: %v, want status %d: %s", c.args, err, c.code, out)
			}
		}
		os.WriteFile(end, nil, 0o644)
		r.cmd.Wait()
	})
	t.Run("not a JVM", func(t *testing.T) {
		c := exec.Command("sleep", "100")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		defer c.Wait()
		defer c.Process.Kill()
		pid := strconv.Itoa(c.Process.Pid)
		if errs, code := d.attach(t, pid); code != 5 || !strings.Contains(errs, "not a JVM") {
			t.Errorf("attach: status %d: %s", code, errs)
		}
		if _, errs, code := heapcam(t, "record", pid); code != 5 || !strings.Contains(errs, "not a JVM") {
			t.Errorf("record: status %d: %s", code, errs)
		}
		c.Process.Kill()
		c.Wait()
		if errs, code := d.attach(t, pid); code != 3 || !strings.Contains(errs, pid) {
			t.Errorf("attach to what has gone: status %d: %s", code, errs)
		}
	})
	d.stop(t)
}

// TestNamespaces records JVMs that have a file system and pids of their own: the library and the ring are put where the
// JVM sees them.
func TestNamespaces(t *testing.T) {
	needReader(t)
	needRoot(t, "JVMs in namespaces of their own", "unshare", "mount", "setpriv")
	if out, err := exec.Command("unshare", "-m", "-p", "--fork", "--mount-proc", "mount", "-t", "tmpfs", "none",
		"/tmp").CombinedOutput(); err != nil {
		t.Skipf("not run: JVMs in namespaces of their own (%v: %s)", err, out)
	}
	if _, err := os.Stat("/var/tmp/heapcam-0"); err != nil { // the agent puts its own library there
		t.Cleanup(func() { os.RemoveAll("/var/tmp/heapcam-0") })
	}
	t.Setenv("TMPDIR", "/var/tmp") // what the JVM needs must not lie in the /tmp that it does not see
	src := classPath(t)
	d := newDaemon(t, "--max-trace-size", "64MiB", "--emergency", "off")
	d.start(t)
	for _, c := range []struct {
		name, mounts string
		user, userns bool
		reason       string // "": it is recorded
	}{
		{"tmp", "mount -t tmpfs none /tmp", false, false, ""},
		{"tmp and shm", "mount -t tmpfs none /tmp && mount -t tmpfs none /dev/shm", false, false, ""},
		{"another user", "mount -t tmpfs -o mode=1777 none /tmp && mount -t tmpfs -o mode=1777 none /dev/shm",
			true, false, ""},
		{"user namespace", "mount -t tmpfs none /tmp && mount -t tmpfs none /dev/shm", true, true, ""},
		// it is memory without a name
		{"no room for a ring", "mount -t tmpfs none /tmp && mount -t tmpfs -o size=1m none /dev/shm", false, false, ""},
		{"noexec tmp", "mount -t tmpfs -o noexec none /tmp && mount -t tmpfs none /run", false, false, ""},
		{"noexec all",
			"mount -t tmpfs -o noexec none /tmp && mount -t tmpfs -o noexec none /run && mount -t tmpfs -o " +
				"noexec none /dev/shm", false, false, "/tmp is mounted noexec"},
		{"read-only tmp", "mount -t tmpfs -o ro none /tmp", false, false, "/tmp is mounted read-only"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			dir := t.TempDir()
			os.Chmod(dir, 0o755)
			classes := filepath.Join(dir, "classes")
			if err := os.CopyFS(classes, os.DirFS(src)); err != nil {
				t.Fatal(err)
			}
			end := filepath.Join(dir, "end")
			// /var/tmp stays as it is for the program's sake, but nothing can be loaded from it.
			script := "mount --bind /var/tmp /var/tmp && mount -o remount,bind,noexec /var/tmp && " + c.mounts +
				` && exec "$@"`
			wrap := []string{"unshare", "-m", "-p", "--fork", "--mount-proc", "sh", "-c", script, "sh"}
			user := []string{"setpriv", "--reuid", "64123", "--regid", "64123", "--clear-groups"}
			switch {
			case c.userns:
				ns := append(user, "unshare", "-U", "-r")
				if err := exec.Command(ns[0], append(ns[1:], "true")...).Run(); err != nil {
					t.Skipf("not run: a JVM in a user namespace of its own (%v)", err)
				}
				wrap[0] = "-U"
				wrap = append(append(user, "unshare", "-r"), wrap...)
				os.Chmod(dir, 0o777)
			case c.user:
				wrap = append(wrap, user...)
			}
			p := program{major: 17, gc: "G1", heap: "64m", main: "Until", args: []string{end, "20000", "12"},
				classes: classes}
			r := p.plain(t, wrap...)
			pid := child(t, r)
			if c.reason == "" {
				recordedBy(t, d, r, pid, end)
				return
			}
			if errs, code := d.attach(t, strconv.Itoa(pid)); code != 5 || !strings.Contains(errs, c.reason) ||
				strings.Count(errs, "\n") != 1 {
				t.Errorf("attach: status %d: %s", code, errs)
			}
			n := r.stops()
			await(t, "the JVM runs on", func() bool { return r.stops() >= n+2 })
			os.WriteFile(end, nil, 0o644)
			if err := r.cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	d.stop(t)
}

// TestTakenFolder: a user who takes the name of the folder for root's shared rings keeps root's agent from nothing.
func TestTakenFolder(t *testing.T) {
	needReader(t)
	needRoot(t, "a folder that another user has taken")
	const spare = "/run/heapcam/rings"
	if _, err := os.Stat(spare); err == nil {
		t.Skip("not run: an agent of this machine may use " + spare)
	}
	t.Cleanup(func() { os.RemoveAll(spare) })
	d := newDaemon(t, "--max-trace-size", "64MiB", "--emergency", "off")
	taken := filepath.Join(d.rings, "heapcam-0")
	if err := errors.Join(os.Chmod(d.rings, 0o777|os.ModeSticky), os.Mkdir(taken, 0o700),
		os.Chown(taken, 64124, 64124)); err != nil {
		t.Fatal(err)
	}
	d.start(t)
	if said := d.stderr.String(); !strings.Contains(said, "shared rings are in "+spare) {
		t.Errorf("the agent: %s", said)
	}
	end := filepath.Join(t.TempDir(), "end")
	p := program{major: 17, gc: "G1", heap: "64m", main: "Until", args: []string{end, "20000", "12"}}
	r := p.plain(t)
	recordedBy(t, d, r, child(t, r), end)
	d.stop(t)
}
