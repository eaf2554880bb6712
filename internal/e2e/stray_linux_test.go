package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/heapcam/heapcam/agent/session"
)

// smallShm runs a command where /dev/shm has no room for a ring: it becomes memory without a name.
var smallShm = []string{"unshare", "-m", "sh", "-c", `mount -t tmpfs -o size=1m none /dev/shm && exec "$@"`, "sh"}

// TestStrayRing: a ring that is in no folder is recorded by run, and by an agent that comes back.
func TestStrayRing(t *testing.T) {
	t.Parallel()
	needReader(t)
	needRoot(t, "rings without a name", "unshare", "mount")
	if out, err := exec.Command("unshare", "-m", "true").CombinedOutput(); err != nil {
		t.Skipf("not run: rings without a name (%v: %s)", err, out)
	}
	t.Run("run", func(t *testing.T) {
		end := filepath.Join(t.TempDir(), "end")
		p := program{major: 25, gc: "Serial", heap: "64m", main: "Until", args: []string{end, "20000", "12"},
			limit: "16MiB",
			wrap:  smallShm}
		r := p.start(t)
		await(t, "its recording", func() bool { // it is searched for after most of a second
			all, err := filepath.Glob(filepath.Join(r.out, "*", "*.hcr"))
			return err == nil && len(all) > 0
		})
		n := r.stops()
		await(t, "collections", func() bool { return r.stops() >= n+10 })
		r.end(t, end)
		rec := r.recorded(t)
		if rec.collections < 10 {
			t.Errorf("%d collections were recorded", rec.collections)
		}
		verify(t, rec.dir, 1)
	})
	for name, below := range map[string][]string{"agent": smallShm, "deleted": nil} {
		t.Run(name, func(t *testing.T) { strayAfterRestart(t, below) })
	}
}

// strayAfterRestart kills the agent of a JVM whose ring has no file, or loses it now, and starts the agent again.
func strayAfterRestart(t *testing.T, below []string) {
	d := newDaemon(t, "--max-trace-size", "64MiB", "--emergency", "off")
	d.start(t)
	end := filepath.Join(t.TempDir(), "end")
	p := program{major: 17, gc: "Parallel", heap: "64m", main: "Until", args: []string{end, "20000", "4"}}
	r := p.plain(t, below...)
	pid := r.pid
	if below != nil {
		n := child(t, r)
		pid = func() int { return n }
	}
	await(t, "pid", func() bool { return pid() > 0 })
	if errs, code := d.attach(t, strconv.Itoa(pid())); code != 0 {
		t.Fatalf("attach: status %d: %s", code, errs)
	}
	find := func() (s session.Status) {
		for _, s := range d.status(t).JVMs {
			if s.PID == pid() {
				return s
			}
		}
		return s
	}
	await(t, "collections", func() bool { return find().Collections >= 3 })
	dir := find().Dir
	d.kill()
	if below == nil {
		ring, err := filepath.Glob(filepath.Join(d.rings, "*", fmt.Sprintf("heapcam-%d-*.ring", pid())))
		if err != nil || len(ring) != 1 || os.Remove(ring[0]) != nil {
			t.Fatalf("rings: %q %v", ring, err)
		}
	}
	n := r.stops()
	await(t, "collections without an agent", func() bool { return r.stops() >= n+3 })
	d.start(t)
	await(t, "the socket", func() bool { // what it says that it is ready comes a moment before
		c, err := net.Dial("unix", d.sock)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	was := find().Collections
	await(t, "the recording goes on", func() bool { return find().Collections >= was+6 && !find().Phase.Over() })
	if s := find(); s.Dir != dir {
		t.Errorf("it goes on in %s, not in %s", s.Dir, dir)
	}
	if err := os.WriteFile(end, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	await(t, "the end of the recording", func() bool { return find().Phase.Over() })
	s := find()
	if s.Dropped.RingEpochs > 0 {
		t.Errorf("lost: %+v", s.Dropped)
	}
	verify(t, dir, 1)
	d.stop(t)
}
