package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/internal/tiers"
)

// TestExactSitesLarge: arrays outside of the threads' buffers have the site of the bytecode or call that made them,
// also in regions of their own (G1), and none where two sites make arrays of one type and length. Objects that are read
// from a stream have one, too. Each object that was also sampled has a stack that says the same.
func TestExactSitesLarge(t *testing.T) {
	tiers.Gate(t, "exact sites of large arrays and of deserialized objects")
	t.Parallel()
	type pair struct {
		major int
		gc    string
	}
	for _, c := range parts(t, pair{17, "G1"}, pair{25, "Parallel"}, pair{17, "Serial"}, pair{25, "G1"}) {
		t.Run(fmt.Sprintf("%s/%d", c.gc, c.major), func(t *testing.T) {
			t.Parallel()
			p := program{major: c.major, gc: c.gc, heap: "128m", main: "Large", args: []string{"1500"},
				opts: []string{"-Xverify:all"}, limit: "64MiB", flags: []string{"--sites", "exact", "--sampling",
					"32KiB", "--sampling-max-overhead", "0%", "--overhead-cpu", "0"}}
			r := p.start(t)
			r.finish(t)
			if out := r.stdout.String(); strings.TrimSpace(out) != "done" {
				t.Fatalf("%s%s", out, r.stderr.String())
			}
			dir := r.recorded(t).dir
			verify(t, dir, 1)
			var q struct {
				Checked uint64 `json:"exact_checked"`
				Wrong   uint64 `json:"exact_wrong"`
			}
			heapcamJSON(t, &q, "coverage", dir)
			if q.Wrong > 0 || q.Checked < 1000 {
				t.Errorf("of %d samples with an exact site %d have another stack", q.Checked, q.Wrong)
			}
			known, all := 0.0, 0.0
			for _, s := range sitesOfType(t, dir, "Large$Item") {
				all += s.Objects
				if !strings.HasPrefix(s.Name, "(") {
					known += s.Objects
				}
			}
			if known < all/2 || all < 5000 {
				t.Errorf("of %.0f objects from a stream %.0f have a site", all, known)
			}
			t.Logf("%d samples compared; %.0f of %.0f objects from a stream have a site", q.Checked, known, all)
		})
	}
}
