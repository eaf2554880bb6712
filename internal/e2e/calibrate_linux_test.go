package e2e

import (
	"math"
	"strconv"
	"testing"
)

// TestCalibration records a program with the site of each object, thins the samples with seeds, and holds the 95 %
// intervals of the estimates against the truth: no fewer hold it than chance allows in one of a thousand runs.
func TestCalibration(t *testing.T) {
	t.Parallel()
	seeds, secs, intervals := 10, "3", []string{"64KiB"}
	if full {
		seeds, secs, intervals = 100, "20", []string{"16KiB", "64KiB", "512KiB"}
	} else {
		t.Log("not run: 100 thinnings, two more intervals (HEAPCAM_FULL=1)")
	}
	p := program{major: 17, gc: "Parallel", heap: "64m", main: "SessionMap", args: []string{secs},
		opts: []string{"-Xmn2m"}, limit: "64MiB", flags: []string{"--sampling", "0", "--sampling-max-overhead", "0%"}}
	r := p.start(t)
	r.finish(t)
	dir := r.recorded(t).dir
	for _, interval := range intervals {
		var c struct {
			Objects   uint64  `json:"objects"`
			Sites     int     `json:"sites"`
			Intervals int     `json:"intervals"`
			Held      int     `json:"held"`
			Stated    float64 `json:"unseen_stated"`
			True      float64 `json:"unseen_true"`
		}
		heapcamJSON(t, &c, "coverage", "--calibrate", interval, "--seeds", strconv.Itoa(seeds), dir)
		n := float64(c.Intervals)
		t.Logf("%s: %d objects of %d sites, %d of %d intervals hold; mass for sites not seen %.3f, true %.3f", interval,
			c.Objects, c.Sites, c.Held, c.Intervals, c.Stated, c.True)
		if least := 0.95*n - 3.09*math.Sqrt(0.95*0.05*n); n < 20 || float64(c.Held) < least {
			t.Errorf("%s: %d of %d intervals hold the truth, want %.0f", interval, c.Held, c.Intervals, least)
		}
	}
	if _, _, code := heapcam(t, "coverage", "--calibrate", "1MiB", "--seeds", "0", dir); code != 0 {
		t.Errorf("--seeds 0: status %d", code)
	}
}
