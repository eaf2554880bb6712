package e2e

import (
	"strings"
	"testing"

	"github.com/heapcam/heapcam/internal/tiers"
)

// TestRetry has the probe meet an unknown class word in each pause from the sixth to the twentieth, as after an attach
// to a G1 JVM with objects of classes that were unloaded before. The recording continues with samples alone, and lists
// the heap again when its wait is over. It does not end.
func TestRetry(t *testing.T) {
	tiers.Gate(t, "a heap that cannot be read for a while")
	t.Parallel()
	somePair(t, "retry", []int{17, 25}, collectors, func(t *testing.T, major int, gc string) {
		t.Parallel()
		p := program{major: major, gc: gc, heap: "64m", main: "Steady", args: []string{"30000", "120000"},
			limit: "64MiB",
			flags: []string{"--emergency", "off"}, probe: "fault_at=6:fault_until=20"}
		r := p.start(t)
		r.finish(t)
		rec := checkCount(t, r)
		if rec.collections < 36 {
			t.Fatalf("%d collections: the test needs some after the wait", rec.collections)
		}
		if log := r.stderr.String(); strings.Count(log, "recording only samples") != 1 ||
			strings.Contains(log, "stopped recording") {
			t.Errorf("the wait must be logged once, and the recording go on:\n%s", log)
		}
		verify(t, rec.dir, 1)
	})
}
