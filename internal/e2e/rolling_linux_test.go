package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// TestRollingListing records heaps that take longer to list than a pause may: their listings are spread over
// collections, the depth stays, and what is listed agrees with the replay, in each file alone.
func TestRollingListing(t *testing.T) {
	needReader(t)
	majors := []int{17}
	if full {
		majors = append(majors, 25)
	}
	eachPair(t, majors, []string{"Serial", "Parallel"}, func(t *testing.T, major int, gc string) {
		p := program{major: major, gc: gc, heap: "256m", opts: []string{"-Xmn24m"}, main: "Swell",
			args: []string{"1000", "60"}, limit: "64MiB", flags: []string{"--max-sync-pause", "1ms"}}
		r := p.start(t)
		r.finish(t)
		rec := checkCount(t, r)
		dump, _, _ := heapcam(t, "dump", "--brief", rec.dir)
		slice := regexp.MustCompile(`slice gc=\d+ ramp=\d+ n=(\d+) reason=\w+ flags=(\S+)`)
		slices := slice.FindAllStringSubmatch(dump, -1)
		last := 0
		for _, s := range slices {
			if strings.Contains(s[2], "last") {
				last++
			}
		}
		if last == 0 || len(slices) < 4 {
			t.Errorf("%d slices, %d of them the last of their listing", len(slices), last)
		}
		pauses := regexp.MustCompile(`pause gc=.* depth=(\w+)`).FindAllStringSubmatch(dump, -1)
		if d := pauses[len(pauses)-1][1]; d != "survivors" {
			t.Errorf("the last pause was recorded at depth %s", d)
		}
		verify(t, rec.dir, 1)
	})
}
