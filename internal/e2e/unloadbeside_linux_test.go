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
		var report struct {
			Collections []struct {
				Kind  string  `json:"kind"`
				Pause float64 `json:"pause_ns"`
				Probe float64 `json:"probe_ns"`
			} `json:"collections"`
		}
		out, _, _ := heapcam(t, "report", rec.dir, "--json")
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			t.Fatal(err)
		}
		// what the probe takes of a remark, times what the JVM takes: walks took 1.6 to 20 times as long
		remarks, least := 0, 1e9
		for _, c := range report.Collections {
			if c.Kind == "remark" {
				remarks, least = remarks+1, min(least, c.Probe/(c.Pause-c.Probe))
			}
		}
		t.Logf("%d remarks; of one the probe took %.2f times as long as the JVM", remarks, least)
		if remarks < 3 || least > 0.8 {
			t.Errorf("%d remarks; of each the probe took at least %.2f times as long as the JVM", remarks, least)
		}
	})
}
