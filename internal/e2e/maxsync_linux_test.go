package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// TestMaxSyncPause records a heap that takes longer to list than it may: nothing is listed while it is large, which is
// reported, and all is recorded again when it is small. What is listed agrees.
// Serial and Parallel spread the listing instead: TestRollingListing.
func TestMaxSyncPause(t *testing.T) {
	needReader(t)
	majors := []int{17}
	if full {
		majors = append(majors, 25)
	}
	eachPair(t, majors, []string{"G1"}, func(t *testing.T, major int, gc string) {
		var rec recorded
		var dump string
		large, again := -1, -1
		// a listing during which its thread is preempted takes long whatever it lists
		for try := 0; try < 3 && again < 0; try++ {
			p := program{major: major, gc: gc, heap: "256m", main: "Swell", args: []string{"1000", "30"},
				limit: "64MiB",
				flags: []string{"--max-sync-pause", "1ms"}}
			r := p.start(t)
			r.finish(t)
			rec = checkCount(t, r)
			dump, _, _ = heapcam(t, "dump", "--brief", rec.dir)
			large = strings.Index(dump, "more than max_sync_pause")
			again = strings.LastIndex(dump, "which max_sync_pause allows again")
		}
		if large < 0 || again < large {
			t.Fatalf("notes of a large heap at %d, of a small one again at %d", large, again)
		}
		pauses := regexp.MustCompile(`pause gc=.* depth=(\w+)`).FindAllStringSubmatch(dump, -1)
		samples := 0
		for _, p := range pauses {
			if p[1] == "samples" {
				samples++
			}
		}
		if last := pauses[len(pauses)-1][1]; samples < 3 || last != "survivors" {
			t.Errorf("%d of %d pauses at depth samples, the last at %s", samples, len(pauses), last)
		}
		verify(t, rec.dir, 0)
	})
}
