package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/session"
)

// TestDetachedByUser: the user of a JVM detaches it, as that user; the agent that discovers JVMs does not come back to
// it, nor after a restart, and says who wanted that; another user cannot, and an operator attaches to it again.
func TestDetachedByUser(t *testing.T) {
	t.Parallel()
	needReader(t)
	needRoot(t, "JVMs of other users", "setpriv")
	const uid = 64124
	t.Cleanup(func() {
		for _, dir := range []string{"/tmp/heapcam-%d", "/tmp/hsperfdata_%d", "/dev/shm/heapcam-%d"} {
			os.RemoveAll(fmt.Sprintf(dir, uid))
		}
	})
	as := func(uid int, line ...string) []string {
		n := strconv.Itoa(uid)
		return append([]string{"setpriv", "--reuid", n, "--regid", n, "--clear-groups"}, line...)
	}
	eachPair(t, []int{17}, []string{"G1"}, func(t *testing.T, major int, gc string) {
		dir, err := os.MkdirTemp("", "heapcam-owner-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		b, err := os.ReadFile(tool)
		if err != nil {
			t.Fatal(err)
		}
		mine, conf := filepath.Join(dir, "heapcam"), filepath.Join(dir, "heapcam.yaml")
		mark := "-Dheapcam.owner=" + filepath.Base(dir)
		for name, text := range map[string][]byte{
			mine: b, conf: fmt.Appendf(nil,
				"discover: true\nrules:\n  - match: {flag: %q}\n  - match: {}\n    record: false\n",
				mark)} {
			if err := os.WriteFile(name, text, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		os.Chmod(dir, 0o755)
		d := newDaemon(t, "--config", conf)
		d.sock = filepath.Join(dir, "s")
		d.start(t)
		end := filepath.Join(t.TempDir(), "end")
		p := program{major: major, gc: gc, heap: "64m", opts: []string{mark}, main: "Until",
			args: []string{end, "2000", "5"}}
		r := p.plain(t, as(uid)...)
		pid := child(t, r)
		find := func() (s session.Status, o api.Other) { // the recording that goes on, else the last one
			st := d.status(t)
			for _, j := range st.JVMs {
				if j.PID == pid && (s.ID == "" || j.Phase == session.Recording) {
					s = j
				}
			}
			for _, j := range st.Others {
				if j.PID == pid {
					o = j
				}
			}
			return s, o
		}
		await(t, "discovery", func() bool { s, _ := find(); return s.Phase == session.Recording && s.Collections > 2 })
		detach := func(uid int) (string, int) {
			line := as(uid, mine, "detach", strconv.Itoa(pid), "--socket", d.sock)
			c := exec.Command(line[0], line[1:]...)
			b, _ := c.CombinedOutput()
			return string(b), c.ProcessState.ExitCode()
		}
		if said, code := detach(uid + 1); code != 3 || strings.Contains(said, "Until") {
			t.Errorf("another user: %d %s", code, said)
		}
		if said, code := detach(uid); code != 0 {
			t.Fatalf("its user: %d %s", code, said)
		}
		who := fmt.Sprintf("detached by uid %d", uid)
		await(t, "detachment", func() bool { s, _ := find(); return s.Phase == session.EndedPhase && s.Reason == who })
		n := r.stops()
		await(t, "the JVM runs on", func() bool { return r.stops() >= n+2 })
		ends := []func(){d.kill}
		if full {
			ends = append(ends, func() { d.stop(t) }) // in order, too
		}
		for _, end := range ends {
			end()
			d.start(t)
			await(t, "word of it", func() bool {
				s, o := find()
				if s.Phase == session.Recording {
					t.Fatal("it was attached to again")
				}
				return o.Why == "detached" && o.Reason == who
			})
		}
		if errs, code := d.attach(t, strconv.Itoa(pid)); code != 0 {
			t.Fatalf("attach: %d %s", code, errs)
		}
		await(t, "a recording", func() bool {
			s, _ := find()
			return s.Phase == session.Recording && s.Collections > 0
		})
		if full { // from now on it is like any other
			d.kill()
			d.start(t)
			await(t, "a recording that goes on", func() bool { s, _ := find(); return s.Phase == session.Recording })
		}
		if err := os.WriteFile(end, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		r.cmd.Wait()
	})
}

// TestToolName: a recording of javac is called javac.
func TestToolName(t *testing.T) {
	t.Parallel()
	needReader(t)
	eachPair(t, []int{17}, []string{"G1"}, func(t *testing.T, major int, gc string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "X.java"), []byte("class X {}"), 0o644); err != nil {
			t.Fatal(err)
		}
		javac := filepath.Join(jdk(t, major), "bin", "javac")
		_, errs, code := heapcam(t, "run", "--out", filepath.Join(dir, "rec"), "--", javac, "--release",
			"17", "-d", dir,
			filepath.Join(dir, "X.java"))
		if code != 0 || !strings.Contains(errs, "heapcam: recorded javac (pid ") {
			t.Errorf("%d %s", code, errs)
		}
	})
}
