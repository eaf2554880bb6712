package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/session"
)

// TestBudget records at depth full what costs more than the budget: the depth goes down to samples (and, in the long
// rounds, up again), each switch is reported, and what was listed meanwhile agrees.
func TestBudget(t *testing.T) {
	needReader(t)
	somePair(t, "budget", []int{17}, []string{"Parallel", "G1"}, func(t *testing.T, major int, gc string) {
		// which would lower it on a machine that is slow enough
		d := newDaemon(t, "--overhead-cpu", "0.05%", "--depth", "full", "--max-sync-pause", "0s")
		d.start(t)
		file := filepath.Join(t.TempDir(), "end")
		p := program{major: major, gc: gc, heap: "64m", main: "Until", args: []string{file, "20000", "1"}}
		r := p.plain(t)
		await(t, "pid", func() bool { return r.pid() > 0 })
		if errs, code := d.attach(t, r.pidText()); code != 0 { // the depth is the agent's
			t.Fatalf("attach: status %d: %s", code, errs)
		}
		var s session.Status
		find := func() session.Status {
			for _, s = range d.status(t).JVMs {
				if s.PID == r.pid() {
					return s
				}
			}
			return session.Status{}
		}
		// The probe lowers it by itself before the agent tells of it, and what the newest switch says (of sampling, or
		// raising the depth) depends on the machine: the trace has them all.
		await(t, "depth samples", func() bool { return find().Depth == "samples" && s.Switches > 0 })
		if !strings.Contains(s.LastSwitch, "budget") {
			t.Errorf("%d switches, the last: %s", s.Switches, s.LastSwitch)
		}
		if full {
			awaitWithin(t, 3*time.Minute, "the way up", func() bool {
				find()
				return strings.Contains(s.LastSwitch, "there is room")
			})
		}
		n := s.LastGC
		await(t, "collections", func() bool { return find().LastGC > n+3 })
		dir := s.Dir
		r.end(t, file)
		d.stop(t)
		verify(t, dir, 1)
		if out, _, _ := heapcam(t, "dump", "--brief", dir); !strings.Contains(out, "depth samples, sampling every ") ||
			!strings.Contains(out, "the overhead budget of 0.05 %") {
			t.Error("the trace does not tell of the switches")
		}
	})
}
