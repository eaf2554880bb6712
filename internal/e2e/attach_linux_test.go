package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/session"
)

// status asks the daemon.
func (d *daemon) status(t *testing.T) (r api.StatusReply) {
	t.Helper()
	out, errs, code := heapcam(t, "status", "--json", "--socket", d.sock, "--out", d.out)
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("status: %v, status %d\n%s%s", err, code, out, errs)
	}
	return r
}

// attach has the daemon record a JVM and says what came of it.
func (d *daemon) attach(t *testing.T, pid string, flags ...string) (errs string, code int) {
	t.Helper()
	_, errs, code = heapcam(t, append([]string{"attach", pid, "--socket", d.sock}, flags...)...)
	return errs, code
}

// TestAttach has the agent record a running JVM: when attach ends with 0 it is recorded; the share that status reports
// counts from when the probe began, also after another agent has come; what cannot be recorded is reported with its
// reason, and the JVM runs on.
func TestAttach(t *testing.T) {
	t.Parallel()
	needReader(t)
	d := newDaemon(t, "--max-trace-size", "64MiB", "--emergency", "off")
	d.start(t)
	somePair(t, "attach", []int{17, 25}, []string{"G1", "Parallel"}, func(t *testing.T, major int, gc string) {
		file := filepath.Join(t.TempDir(), "end")
		p := program{major: major, gc: gc, heap: "64m", main: "Until", args: []string{file, "20000", "12"}}
		r := p.plain(t)
		await(t, "pid", func() bool { return r.pid() > 0 })
		pid := r.pidText()
		errs, code := d.attach(t, pid)
		if code != 0 || !strings.Contains(errs, "recording Until") {
			t.Fatalf("attach: status %d: %s", code, errs)
		}
		find := func() (s session.Status) {
			for _, s := range d.status(t).JVMs {
				if s.PID == r.pid() {
					return s
				}
			}
			return s
		}
		s := find()
		if s.Phase != session.Recording || !strings.Contains(errs, s.Dir) {
			t.Errorf("attach ended with %q, the status is %+v", errs, s)
		}
		n := r.stops()
		await(t, "collections", func() bool { return r.stops() >= n+5 && find().LastGC > 2 })
		s = find()
		if _, code := d.attach(t, pid); code != 2 {
			t.Errorf("a second attach: status %d, want 2", code)
		}
		d.kill()
		time.Sleep(100 * time.Millisecond)
		d.start(t)
		n = r.stops()
		await(t, "collections", func() bool { return r.stops() >= n+2 && find().LastGC > s.LastGC && find().UpNS > 0 })
		again := find()
		if d := again.Since.Sub(s.Since).Abs(); d > 50*time.Millisecond {
			t.Errorf("the agent that came later says since %v, the one before %v", again.Since, s.Since)
		}
		if again.ProbeNS == 0 || again.UpNS < again.PauseNS || again.UpNS > uint64(time.Since(again.Since)) {
			t.Errorf("%d ns in pauses, %d of them ours, in %d ns", again.PauseNS, again.ProbeNS, again.UpNS)
		}
		if _, errs, code := heapcam(t, "detach", pid, "--socket", d.sock); code != 0 {
			t.Fatalf("detach: status %d: %s", code, errs)
		}
		await(t, "the end of the recording", func() bool { return find().Phase.Over() })
		if errs, code := d.attach(t, pid); code != 0 {
			t.Fatalf("attach after detach: status %d: %s", code, errs)
		}
		var second session.Status
		await(t, "the second recording", func() bool {
			for _, s := range d.status(t).JVMs {
				if s.PID == r.pid() && s.Phase == session.Recording && s.LastGC > 8 { // a sync point may be in slices
					second = s
				}
			}
			return second.ID != ""
		})
		if second.Dir == again.Dir {
			t.Errorf("both recordings are in %s", second.Dir)
		}
		r.end(t, file)
		verify(t, again.Dir, 1)
		verify(t, second.Dir, 1)
	})
	for _, c := range []struct {
		name, reason string
		opts         []string
	}{
		{"no perf data", "UsePerfData", []string{"-XX:+UseG1GC", "-XX:-UsePerfData"}},
		{"no attaching", "attaching is disabled", []string{"-XX:+UseG1GC", "-XX:+DisableAttachMechanism"}},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "end")
			p := program{major: 17, heap: "256m", opts: c.opts, main: "Until", args: []string{file, "2000", "1"}}
			r := p.plain(t)
			await(t, "pid", func() bool { return r.pid() > 0 })
			if errs, code := d.attach(t, r.pidText()); code != 5 || !strings.Contains(errs, c.reason) ||
				strings.Count(errs, "\n") != 1 {
				t.Errorf("attach: status %d: %s", code, errs)
			}
			if _, errs, code := heapcam(t, "record", r.pidText(), "--out", d.out); code != 5 ||
				!strings.Contains(errs, c.reason) || strings.Count(errs, "\n") != 1 {
				t.Errorf("record: status %d: %s", code, errs)
			}
			r.end(t, file)
		})
	}
	d.stop(t)
}
