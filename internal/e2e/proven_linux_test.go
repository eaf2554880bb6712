package e2e

import (
	"fmt"
	"testing"

	"github.com/heapcam/heapcam/internal/tiers"
)

// TestProvenSites records programs whose allocations are samples, and compares the sites that are proven with the
// stacks of the samples: of two hundred objects at most one may be from elsewhere. Plums and pears have one site each,
// apples two, so that those are proven and these are not.
func TestProvenSites(t *testing.T) {
	tiers.Gate(t, "proven sites of a real program")
	t.Parallel()
	type pair struct {
		major int
		gc    string
	}
	for _, c := range parts(t, pair{17, "G1"}, pair{17, "Parallel"}, pair{25, "Serial"}) {
		t.Run(fmt.Sprintf("%s/%d", c.gc, c.major), func(t *testing.T) {
			t.Parallel()
			p := program{major: c.major, gc: c.gc, heap: "96m", opts: []string{"-Xmn6m"}, main: "Known",
				args:  []string{"6000", "600"}, // 36 s, since a round may take many seconds on a slow machine
				flags: []string{"--sampling", "4KiB", "--sampling-max-overhead", "0%"},
				limit: "64MiB", probe: "newsites=2"}
			r := p.start(t)
			r.finish(t)
			dir := r.recorded(t).dir
			verify(t, dir, 1)
			var q struct {
				Checked     uint64 `json:"proofs_checked"`
				Wrong       uint64 `json:"proofs_wrong"`
				Few         uint64 `json:"candidates_checked"`
				FewWrong    uint64 `json:"candidates_wrong"`
				Collections []struct {
					Known    bool `json:"known"`
					Coverage struct {
						Proven uint64 `json:"proven_objects"`
						Few    uint64 `json:"candidates_objects"`
					} `json:"coverage"`
				} `json:"collections"`
			}
			heapcamJSON(t, &q, "coverage", dir)
			if q.Checked < 5 || q.Wrong*200 > q.Checked {
				t.Errorf("%d samples of classes with one candidate, %d are from elsewhere", q.Checked, q.Wrong)
			}
			if q.Few < 20 || q.FewWrong*200 > q.Few {
				t.Errorf("%d samples of classes with few candidates, %d are from elsewhere", q.Few, q.FewWrong)
			}
			most, few := uint64(0), uint64(0)
			for _, c := range q.Collections {
				if c.Known {
					most, few = max(most, c.Coverage.Proven), max(few, c.Coverage.Few)
				}
			}
			if most == 0 {
				t.Error("no object has a proven site")
			}
			if few == 0 {
				t.Error("no object has few candidates")
			}
			t.Logf("%d checked, %d wrong, at most %d proven; of few candidates %d, %d, %d", q.Checked, q.Wrong, most,
				q.Few, q.FewWrong, few)
		})
	}
}
