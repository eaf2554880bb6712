package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/internal/tiers"
)

// TestMissed has jcmd collect with and without events. Serial and Parallel on 17 post none for GC.class_histogram and
// GC.heap_dump: the recording counts each of them, with its pause unknown, and the state after the next collection is
// jcmd's. G1, and all collectors on 25, post events: none is missed.
func TestMissed(t *testing.T) {
	tiers.Gate(t, "collections that post no events")
	t.Parallel()
	eachPair(t, []int{17, 25}, collectors, func(t *testing.T, major int, gc string) {
		if gc != "Serial" && !full && (major == 25 || gc == "G1") {
			t.Skip("a long round (HEAPCAM_FULL=1)")
		}
		t.Parallel()
		p := program{major: major, gc: gc, main: "Hold", heap: "128m", limit: "64MiB",
			flags: []string{"--emergency", "off"}}
		r := p.start(t)
		jcmd := func(args ...string) string {
			out, err := exec.Command(filepath.Join(jdk(t, major), "bin", "jcmd"),
				append([]string{r.pidText()}, args...)...).CombinedOutput()
			if err != nil {
				t.Fatalf("jcmd %v: %v\n%s", args, err, out)
			}
			return string(out)
		}
		silent := major < 25 && gc != "G1"
		var histograms []map[string][2]uint64
		var want []uint64 // collections without events before each jcmd GC.run
		asked := uint64(0)
		run := func() {
			jcmd("GC.run")
			want = append(want, asked)
			asked = 0
		}
		for i := range 3 {
			await(t, "ready", func() bool { return strings.Count(r.stdout.String(), "ready\n") > i })
			for range i {
				jcmd("GC.class_histogram")
				asked++
			}
			if i == 1 {
				jcmd("GC.heap_dump", filepath.Join(t.TempDir(), "heap.hprof"))
				asked++
			}
			run()
			run() // nothing is left for the JVM to clear and to fill
			histograms = append(histograms, parseHistogram(jcmd("GC.class_histogram")))
			asked++
			if i == 2 {
				run()
			}
			r.stdinW.WriteString("\n")
		}
		r.finish(t)
		rec := r.recorded(t)
		verify(t, rec.dir, 1)
		var rep struct {
			Missed      uint64 `json:"missed_collections"`
			Lost        uint64 `json:"lost_epochs"`
			Collections []struct {
				GC     uint64 `json:"gc"`
				JVMGC  uint64 `json:"jvm_gc"`
				Kind   string `json:"kind"`
				Cause  string `json:"cause"`
				Missed uint64 `json:"missed_collections"`
			} `json:"collections"`
		}
		heapcamJSON(t, &rep, "report", rec.dir)
		k, missed, lastGC := 0, uint64(0), int64(-1)
		for _, c := range rep.Collections {
			// The JVM's own numbers: without events are those between two collections, but for a young one before a
			// full one of Parallel in the same pause.
			own := int64(1)
			if gc == "Parallel" && c.Kind == "full" {
				own = 2
			}
			missed += c.Missed
			if gap := int64(c.JVMGC) - lastGC - own; silent && gap != int64(c.Missed)*own {
				t.Errorf("collection %d: %d missed, but GC(%d) comes after GC(%d)", c.GC, c.Missed, c.JVMGC, lastGC)
			}
			lastGC = int64(c.JVMGC)
			if c.Cause != "Diagnostic Command" {
				continue
			}
			if k >= len(want) {
				t.Fatal("more collections were recorded than jcmd asked for")
			}
			n := want[k]
			if !silent {
				n = 0
			}
			if silent && missed != n || missed < n {
				t.Errorf("jcmd GC.run %d: %d collections missed before it, want %d", k, missed, n)
			}
			missed = 0
			if k%2 == 1 && silent {
				var h histogramReply
				heapcamJSON(t, &h, "histogram", rec.dir, "--at", fmt.Sprint(c.GC))
				compareHistograms(t, fmt.Sprintf("GC %d", c.GC), histograms[k/2], h)
			}
			k++
		}
		total := uint64(0)
		for _, n := range want {
			total += n
		}
		if !silent {
			total = 0
		}
		if k != len(want) || rep.Missed != total || rep.Lost != 0 {
			t.Errorf("%d of %d collections that jcmd asked for with events, %d missed, want %d; %d lost", k, len(want),
				rep.Missed, total, rep.Lost)
		}
		out, _, _ := heapcam(t, "report", rec.dir)
		if text := fmt.Sprintf(" %d collection", total); total > 0 &&
			(!strings.Contains(out, text) || !strings.Contains(out, "unknown. The JVM reports no events")) {
			t.Errorf("report does not say%s and that their pauses are unknown:\n%s", text, out)
		}
	})
}
