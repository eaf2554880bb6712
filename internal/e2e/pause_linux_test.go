package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/session"
)

// TestPause stops recording by verb and by the host's switch and lets it go on: the probe counts no collection
// meanwhile, trace and status show it, an agent that comes later knows it, and what is recorded before and behind
// agrees with its sync points.
func TestPause(t *testing.T) {
	t.Parallel()
	needReader(t)
	somePair(t, "pause", []int{17}, collectors, func(t *testing.T, major int, gc string) {
		off := filepath.Join(t.TempDir(), "disabled")
		d := newDaemon(t, "--disabled", off)
		d.start(t)
		file := filepath.Join(t.TempDir(), "end")
		p := program{major: major, gc: gc, heap: "32m", main: "Until", args: []string{file, "2000", "10"}}
		r := p.plain(t)
		await(t, "pid", func() bool { return r.pid() > 0 })
		if errs, code := d.attach(t, r.pidText()); code != 0 {
			t.Fatalf("attach: status %d: %s", code, errs)
		}
		find := func(pid int) session.Status {
			for _, s := range d.status(t).JVMs {
				if s.PID == pid {
					return s
				}
			}
			return session.Status{}
		}
		records := func(what string) {
			t.Helper()
			n := find(r.pid()).LastGC
			await(t, what, func() bool { s := find(r.pid()); return s.Phase == session.Recording && s.LastGC > n+2 })
		}
		still := func(what string) { // while the application collects
			t.Helper()
			had, n, samples := d.ring(t).Epochs, r.stops(), d.ring(t).Samples
			await(t, "collections", func() bool { return r.stops() > n+2 })
			if h := d.ring(t); h.Epochs != had || h.Samples != samples {
				t.Errorf("%s: %d collections and %d samples were recorded meanwhile", what, h.Epochs-had,
					h.Samples-samples)
			}
		}
		records("a recording")
		verb := func(args ...string) {
			t.Helper()
			if _, errs, code := heapcam(t, append(args, "--socket", d.sock)...); code != 0 {
				t.Fatalf("%v: status %d: %s", args, code, errs)
			}
		}
		verb("pause", r.pidText())
		await(t, "pause", func() bool {
			s := find(r.pid())
			return s.Phase == session.Paused && s.Reason == "requested by an operator"
		})
		still("pause")
		d.stop(t)
		d.start(t)
		await(t, "the agent that came later knows it", func() bool { return find(r.pid()).Phase == session.Paused })
		still("pause, another agent")
		verb("resume", "--all")
		records("resume")
		if err := os.WriteFile(off, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		await(t, "the host's switch", func() bool { return d.ring(t).State.String() == "paused" })
		t.Logf("the host's switch took %v", time.Since(begun))
		still("the host's switch")
		if errs, code := d.attach(t, r.pidText()); code != 5 || !strings.Contains(errs, off) {
			t.Errorf("attach while the switch is set: status %d: %s", code, errs)
		}
		verb("resume", "--all")
		still("the host's switch, resumed")
		const switched = "paused: recording is switched off"
		dir := find(r.pid()).Dir
		await(t, "the trace shows the host's switch", func() bool {
			out, _, _ := heapcam(t, "dump", "--brief", dir)
			return strings.Contains(out, switched)
		})
		d.kill() // the probe knows the switch by itself
		if err := os.Remove(off); err != nil {
			t.Fatal(err)
		}
		d.start(t)
		records("without the switch")
		d.stop(t)
		// Without an agent the probe heeds the switch alone.
		if err := os.WriteFile(off, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		begun = time.Now()
		await(t, "the host's switch, no agent", func() bool { return d.ring(t).State.String() == "paused" })
		t.Logf("the probe alone took %v", time.Since(begun))
		still("the probe alone")
		os.Remove(off)
		d.start(t)
		records("again")
		r.end(t, file)
		d.stop(t)
		verify(t, dir, 3)
		out, _, _ := heapcam(t, "dump", "--brief", dir)
		for _, s := range []string{"paused: requested by", switched, "recording resumed"} {
			if !strings.Contains(out, s) {
				t.Errorf("the trace does not show it: %s", s)
			}
		}
		var cost struct {
			Schema string
			Total  struct {
				Collections int
				Probe       uint64 `json:"probe_ns"`
				Sync        uint64 `json:"sync_ns"`
				Sampling    uint64 `json:"sampling_ns"`
			}
			Events []struct{ Text string }
		}
		heapcamJSON(t, &cost, "cost", dir)
		texts := fmt.Sprint(cost.Events)
		if cost.Schema != "heapcam.cost/1" || cost.Total.Collections == 0 || cost.Total.Probe == 0 ||
			cost.Total.Sync == 0 ||
			cost.Total.Sampling == 0 ||
			!strings.Contains(texts, "attached to the running JVM") || strings.Count(texts, "paused: ") < 3 ||
			!strings.Contains(texts, "sync point (after lost collections)") &&
				strings.Count(texts, "sync point (a new file begins)") < 2 { // in slices, each resumed one
			t.Errorf("cost: %+v", cost)
		}
	})
}
