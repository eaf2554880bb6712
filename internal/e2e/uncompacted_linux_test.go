package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/internal/tiers"
)

// TestUncompacted has G1 leave regions uncompacted in which nearly all lives: the recorded state counts none of the
// dead objects in them (17 leaves them there, from 20 on fillers cover them), and a replay agrees with each listing
// afterwards.
func TestUncompacted(t *testing.T) {
	tiers.Gate(t, "regions that a full collection left")
	t.Parallel()
	somePair(t, "uncompacted", []int{17}, []string{"G1"}, func(t *testing.T, major int, gc string) {
		for _, depth := range []string{"survivors", "full"} {
			t.Run(depth, func(t *testing.T) {
				t.Parallel()
				p := program{major: major, gc: gc, main: "Uncompacted", heap: "128m", limit: "64MiB",
					flags: []string{"--emergency", "off", "--depth", depth, "--max-sync-pause", "0s"},
					opts: []string{"-XX:+UnlockExperimentalVMOptions", "-XX:InitiatingHeapOccupancyPercent=5",
						"-XX:G1MixedGCLiveThresholdPercent=100", "-XX:G1HeapWastePercent=0"}}
				r := p.start(t)
				var jcmd []map[string][2]uint64
				for i := range 3 {
					await(t, "ready", func() bool { return strings.Count(r.stdout.String(), "ready\n") > i })
					out, err := exec.Command(filepath.Join(jdk(t, major), "bin", "jcmd"), r.pidText(),
						"GC.class_histogram").CombinedOutput()
					if err != nil {
						t.Fatalf("jcmd: %v\n%s", err, out)
					}
					jcmd = append(jcmd, parseHistogram(string(out)))
					r.stdinW.WriteString("\n")
				}
				r.finish(t)
				rec := checkCount(t, r)
				verify(t, rec.dir, 1)
				var rep reportReply
				heapcamJSON(t, &rep, "report", rec.dir)
				k, mixed, rotated := 0, 0, 0
				for _, c := range rep.Collections {
					if c.Kind == "mixed" {
						mixed++
					}
					if c.Synced && c.Kind == "young" && k > 0 {
						rotated++
					}
					if !strings.Contains(c.Cause, "Heap Inspection") {
						continue
					}
					var h histogramReply
					heapcamJSON(t, &h, "histogram", rec.dir, "--at", strconv.FormatUint(c.GC, 10))
					compareHistograms(t, fmt.Sprintf("GC %d", c.GC), jcmd[k], h)
					k++
				}
				if k != len(jcmd) || mixed == 0 {
					t.Errorf("%d of %d heap inspections were recorded, %d mixed collections", k, len(jcmd), mixed)
				}
				t.Logf("%d mixed collections, %d young ones with listings", mixed, rotated)
			})
		}
	})
}
