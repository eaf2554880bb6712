package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// TestRollingListing records heaps that take longer to list than a pause may: their listings are spread over
// collections, the depth stays, and what is listed agrees with the replay, in each file alone.
func TestRollingListing(t *testing.T) {
	t.Parallel()
	needReader(t)
	majors := []int{17}
	if full {
		majors = append(majors, 25)
	}
	eachPair(t, majors, []string{"Serial", "Parallel"}, func(t *testing.T, major int, gc string) {
		p := program{major: major, gc: gc, heap: "256m", opts: []string{"-Xmn24m"}, main: "Swell",
			args: []string{"1000", "60"}, limit: "64MiB", probe: "slice=1000"}
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

// TestRollingRegions is the same for G1, whose regions change their kind during a listing: mixed collections,
// classes that are unloaded, large objects and, in a second run, full collections. Listings have stops of their own.
func TestRollingRegions(t *testing.T) {
	t.Parallel()
	needReader(t)
	majors, fulls := []int{25}, []string{"700"}
	if full {
		majors, fulls = append(majors, 17), append(fulls, "0")
	}
	for _, every := range fulls {
		eachPair(t, majors, []string{"G1"}, func(t *testing.T, major int, gc string) {
			p := program{major: major, gc: gc, heap: "200m", main: "Swirl", limit: "12MiB",
				opts:  []string{"-Xmn20m", "-XX:InitiatingHeapOccupancyPercent=20"},
				probe: "slice=1000", args: []string{"2000", "400", every}}
			if major == 25 {
				p.opts = append(p.opts, "-XX:+UseCompactObjectHeaders")
			}
			r := p.start(t)
			r.finish(t)
			dump := slicesAgree(t, r)
			if strings.Contains(dump, "depth=samples") {
				t.Error("a pause was recorded at depth samples")
			}
		})
	}
}

// slicesAgree verifies what r has recorded, listings in slices, and gives its dump.
func slicesAgree(t *testing.T, r *running) string {
	rec := r.recorded(t)
	dump, _, _ := heapcam(t, "dump", "--brief", rec.dir)
	if n := strings.Count(dump, "slice gc="); n < 4 {
		t.Errorf("%d slices", n)
	}
	verify(t, rec.dir, 1)
	return dump
}

// TestRollingLosses: three epochs of each twelve do not fit, and the next one says what a reader has to forget.
func TestRollingLosses(t *testing.T) {
	t.Parallel()
	needReader(t)
	somePair(t, "rolling losses", []int{17, 25}, []string{"Parallel", "G1"},
		func(t *testing.T, major int, gc string) {
			p := program{major: major, gc: gc, heap: "200m", main: "Swirl", limit: "16MiB", opts: []string{"-Xmn20m"},
				args: []string{"3000", "300", "0"}, probe: "lose=12,slice=1000"}
			if gc == "G1" {
				p.opts = append(p.opts, "-XX:InitiatingHeapOccupancyPercent=20")
			}
			r := p.start(t)
			r.finish(t)
			if dump := slicesAgree(t, r); !strings.Contains(dump, "  lost since=") {
				t.Error("no epoch tells of lost ones")
			}
		})
}
