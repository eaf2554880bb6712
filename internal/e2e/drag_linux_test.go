package e2e

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/internal/tiers"
)

// TestDrag runs a program that holds objects of eight sites for a known time after their last use (`run --drag app`):
// the drag of each is within 10 % of what the program did, that of the site without drag is small, and the program ends
// as it does without. The heap is such that objects die in young space, so that collections find out soon.
func TestDrag(t *testing.T) {
	tiers.Gate(t, "drag of planted objects")
	type pair struct{ gc, opt string }
	for _, c := range parts(t, pair{"Parallel", "-Xverify:all"}, pair{"Serial", "-Xcheck:jni"}) {
		t.Run(c.gc, func(t *testing.T) {
			p := program{major: 17, gc: c.gc, heap: "300m", main: "Drag", args: []string{"200"},
				opts: []string{c.opt, "-Xms300m", "-Xmn150m", "-XX:SurvivorRatio=1", "-XX:-UseAdaptiveSizePolicy",
					"-XX:TargetSurvivorRatio=100", "-XX:MaxTenuringThreshold=15", "-XX:InitialTenuringThreshold=15"},
				flags: []string{"--drag", "app", "--sampling", "8KiB", "--shm-size", "64MiB"}, limit: "256MiB"}
			r := p.start(t)
			r.finish(t)
			if out := r.stdout.String() + r.stderr.String(); strings.Contains(out, "WARNING in native") ||
				!strings.Contains(out, "3 classes with") {
				t.Fatal(out)
			}
			dir := r.recorded(t).dir
			verify(t, dir, 1)
			compareDrag(t, r.stdout.String(), dragBySite(t, dir))
		})
	}
}

type dragRow struct {
	Bytes float64 `json:"bytes"`
	Site  []struct {
		Method string `json:"method"`
	} `json:"site"`
	Drag struct {
		Value, Low, High float64
	} `json:"drag_byte_seconds"`
}

// dragBySite gives the rows of a recording by the number of their site, makeN.
func dragBySite(t *testing.T, dir string) map[string]dragRow {
	t.Helper()
	var out struct {
		Rows       []dragRow
		Unfollowed float64 `json:"unfollowed_bytes"`
	}
	heapcamJSON(t, &out, "drag", "--by", "site", "--top", "0", dir)
	by := map[string]dragRow{}
	for _, x := range out.Rows {
		if len(x.Site) > 0 {
			by[strings.TrimPrefix(x.Site[0].Method, "make")] = x
		}
	}
	return by
}

// compareDrag compares with what the program printed: lines "site N bytes bytes×seconds".
func compareDrag(t *testing.T, printed string, by map[string]dragRow) {
	t.Helper()
	lines := regexp.MustCompile(`(?m)^site (\d) (\d+) (\d+)$`).FindAllStringSubmatch(printed, -1)
	if len(lines) != 8 {
		t.Fatalf("%d sites", len(lines))
	}
	for _, l := range lines {
		x := by[l[1]]
		bytes, _ := strconv.ParseFloat(l[2], 64)
		drag, _ := strconv.ParseFloat(l[3], 64)
		said := fmt.Sprintf("site %s: %.1f MB, drag %.2f MB·s (%.2f to %.2f); it had %.1f and %.2f", l[1], x.Bytes/1e6,
			x.Drag.Value/1e6, x.Drag.Low/1e6, x.Drag.High/1e6, bytes/1e6, drag/1e6)
		t.Log(said)
		switch {
		case math.Abs(x.Bytes-bytes) > bytes/10, x.Drag.Low > drag, x.Drag.High < drag:
			t.Error(said)
		case drag < bytes/100: // 10 ms
			if x.Drag.Value > 0.2*bytes { // seconds; half the time between two collections
				t.Error(said)
			}
		case math.Abs(x.Drag.Value-drag) > drag/10:
			t.Error(said)
		}
	}
}
