package e2e

import (
	"encoding/json"
	"testing"
)

// TestUnloadBeside: a remark that unloads classes does not look for their objects in all of a large heap, which took
// longer than all else of the pause. The probe still distinguishes objects of dead classes from those of classes that
// got their words: the replay equals the listings.
func TestUnloadBeside(t *testing.T) {
	t.Parallel()
	needReader(t)
	majors := []int{17}
	if full {
		majors = append(majors, 25)
	}
	eachPair(t, majors, []string{"G1"}, func(t *testing.T, major int, gc string) {
		p := program{major: major, gc: gc, heap: "400m", main: "UnloadBeside", args: []string{"100", "8"},
			opts: []string{"-Xmn24m", "-XX:+ExplicitGCInvokesConcurrent"}, flags: []string{"--overhead-cpu", "0"},
			limit: "64MiB", probe: "slice=1000,oracle=1"}
		r := p.start(t)
		r.finish(t)
		rec := r.recorded(t)
		verify(t, rec.dir, 1)
		for _, l := range r.probeLines() {
			t.Logf("the probe says: %s", l)
		}
		least, remarks := probeBeside(t, rec.dir, "remark", 1<<20)
		t.Logf("%d remarks; of one the probe took %.2f times as long as the JVM", remarks, least)
		if remarks == 0 || least > 0.8 { // walks took 1.6 to 20 times as long; a busy machine makes few remarks
			t.Errorf("%d remarks; of each the probe took at least %.2f times as long as the JVM", remarks, least)
		}
	})
}

// probeBeside gives how many of the newest collections of a recording are of that kind, and what the probe takes of
// one, at least: times what the JVM takes.
func probeBeside(t *testing.T, dir, kind string, newest int) (least float64, n int) {
	t.Helper()
	var report struct {
		Collections []struct {
			Kind  string  `json:"kind"`
			Pause float64 `json:"pause_ns"`
			Probe float64 `json:"probe_ns"`
		} `json:"collections"`
	}
	out, _, _ := heapcam(t, "report", dir, "--json")
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	least = 1e9
	for _, c := range report.Collections[max(0, len(report.Collections)-newest):] {
		if c.Kind == kind {
			least, n = min(least, c.Probe/(c.Pause-c.Probe)), n+1
		}
	}
	return least, n
}
