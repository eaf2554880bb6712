package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/heapcam/heapcam/shmring"
)

// daemon is a running `heapcam agent` with folders of its own.
type daemon struct {
	cmd              *exec.Cmd
	sock, out, rings string
	flags            []string
	wrap             []string // a program that runs it
	stderr           *buffer
}

// newDaemon makes the folders; start runs it.
func newDaemon(t *testing.T, flags ...string) *daemon {
	t.Helper()
	shm := "/dev/shm"
	if _, err := os.Stat(shm); err != nil {
		shm = ""
	}
	rings, err := os.MkdirTemp(shm, "heapcam-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(rings, 0o755) // JVMs of other users have their folders below it
	t.Cleanup(func() { os.RemoveAll(rings) })
	if !slices.Contains(flags, "--overhead-cpu") && !slices.Contains(flags, "--config") { // as in program.start
		flags = append(slices.Clone(flags), "--overhead-cpu", "0")
	}
	dir := t.TempDir()
	d := &daemon{sock: filepath.Join(dir, "agent.sock"), out: filepath.Join(dir, "rec"), rings: rings, flags: flags}
	t.Cleanup(func() {
		d.kill()
		if keep := os.Getenv("HEAPCAM_KEEP"); keep != "" && t.Failed() {
			t.Log(os.CopyFS(filepath.Join(keep, strings.ReplaceAll(t.Name(), "/", "_")), os.DirFS(d.out)))
		}
		if t.Failed() {
			t.Logf("agent:\n%s", tail(d.stderr.String()))
		}
	})
	return d
}

// start runs the daemon and waits until it is ready.
func (d *daemon) start(t *testing.T) {
	t.Helper()
	d.stderr = &buffer{}
	line := append(slices.Clone(d.wrap), tool, "agent", "--socket", d.sock, "--out", d.out, "--shm-dir", d.rings)
	line = append(line, d.flags...)
	d.cmd = exec.Command(line[0], line[1:]...)
	d.cmd.Stderr = d.stderr
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "agent is ready", func() bool { return strings.Contains(d.stderr.String(), "agent is ready") })
}

func (d *daemon) kill() {
	if d.cmd != nil {
		d.cmd.Process.Kill()
		d.cmd.Wait()
		d.cmd = nil
	}
}

// stop ends the daemon in order.
func (d *daemon) stop(t *testing.T) {
	t.Helper()
	d.cmd.Process.Signal(syscall.SIGTERM)
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("agent: %v", err)
	}
	d.cmd = nil
}

// option is what the agent says that a JVM needs to be recorded.
func (d *daemon) option(t *testing.T) string {
	t.Helper()
	m := regexp.MustCompile(`option="?(-agentpath:[^\s"]+)`).FindStringSubmatch(d.stderr.String())
	if m == nil {
		t.Fatalf("the agent names no option:\n%s", d.stderr.String())
	}
	return m[1]
}

// ring is how the shared ring of the only JVM stands, the one that takes over if there is one: the probe writes there.
func (d *daemon) ring(t *testing.T) shmring.Status {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(d.rings, "*", "*.ring"))
	if len(paths) != 1 {
		t.Fatalf("rings: %v", paths)
	}
	r, err := shmring.Open(paths[0]+shmring.NextSuffix, shmring.Options{})
	if err != nil {
		r, err = shmring.Open(paths[0], shmring.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	st, err := r.Status()
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// recordings are the ring folders.
func (d *daemon) recordings() []string {
	dirs, _ := filepath.Glob(filepath.Join(d.out, "*"))
	return dirs
}

// plain starts a program without `heapcam run`: with options of its own, its standard streams as a running has them.
func (p *program) plain(t *testing.T, wrap ...string) *running {
	t.Helper()
	dir := t.TempDir()
	os.Chmod(dir, 0o777) // maybe another user's
	os.Chmod(filepath.Dir(dir), 0o755)
	os.Chmod(scratch, 0o755)
	heap := p.heap
	if heap == "" {
		heap = "96m"
	}
	r := &running{program: p, gclog: filepath.Join(dir, "gc.log"), stdout: &buffer{}, stderr: &buffer{}}
	args := append(wrap, filepath.Join(jdk(t, p.major), "bin", "java"), "-Xmx"+heap,
		"-Xlog:gc,safepoint:file="+r.gclog+":uptime")
	if p.gc != "" {
		args = append(args, "-XX:+Use"+p.gc+"GC")
	}
	cp := p.classes
	if cp == "" {
		cp = classPath(t)
	}
	args = append(append(append(args, p.opts...), "-cp", cp, p.main), p.args...)
	r.cmd = exec.Command(args[0], args[1:]...)
	r.cmd.Stdout, r.cmd.Stderr = r.stdout, r.stderr
	r.cmd.Env = append(os.Environ(), p.env...)
	if p.stdin != nil {
		r.cmd.Stdin = p.stdin
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if r.cmd.ProcessState == nil {
			r.cmd.Process.Kill()
			r.cmd.Wait()
		}
		if t.Failed() {
			t.Logf("%v\nstdout:\n%s\nstderr:\n%s", args, tail(r.stdout.String()), tail(r.stderr.String()))
		}
	})
	return r
}
