package collection

import (
	"strings"
	"testing"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// TestSamplingGivenUp: it is said since when not each allocation is sampled, but only if that was asked for, and not
// where it is sampled again.
func TestSamplingGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		asked, lost uint64
		intervals   []uint64
		longer      uint64
		why         string
	}{
		"each allocation":   {0, 5, []uint64{0, 0}, 0, ""},
		"no room":           {0, 5, []uint64{0, 65536, 65536}, 2, "no room"},
		"a budget":          {0, 0, []uint64{0, 0, 65536}, 3, "heapcam cost"},
		"again":             {0, 5, []uint64{0, 65536, 0}, 0, ""},
		"not asked for":     {65536, 5, []uint64{65536, 1 << 20}, 0, ""},
		"before the window": {0, 5, []uint64{65536, 65536}, 1, "no room"},
	} {
		var s Sampling
		for i, n := range c.intervals {
			s.Follow(c.asked, &heap.Collection{Pause: trace.Pause{GC: uint64(i + 1), Interval: n}})
		}
		got := string(s.GivenUp(c.lost))
		if s.Longer != c.longer || s.Interval != c.intervals[len(c.intervals)-1] || !strings.Contains(got, c.why) ||
			(got == "") != (c.why == "") {
			t.Errorf("%s: %+v, %q", name, s, got)
		}
	}
}
