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

// TestDrag runs a program that holds objects of nine sites for a known time after their last use (`run --drag app`, or
// `all`, with what the JDK makes for one of them): the drag of each is within 10 % of what the program did, that of the
// site without drag is small, and the program ends as it does without. The heap is such that objects die in young
// space, so that collections find out soon.
func TestDrag(t *testing.T) {
	tiers.Gate(t, "drag of planted objects")
	type part struct {
		major          int
		gc, scope, opt string
	}
	for _, c := range parts(t, part{17, "Parallel", "app", "-Xverify:all"}, part{17, "Serial", "all", "-Xcheck:jni"},
		part{25, "G1", "all", "-Xverify:all"}, part{17, "G1", "app", "-Xcheck:jni"},
		part{25, "Serial", "app", "-Xcheck:jni"}, part{25, "Parallel", "all", "-Xverify:all"},
		part{17, "Serial", "app", "-Xcheck:jni"}, part{17, "Parallel", "all", "-Xverify:all"},
		part{25, "Parallel", "app", "-Xverify:all"}) {
		t.Run(fmt.Sprintf("%d/%s/%s", c.major, c.gc, c.scope), func(t *testing.T) {
			young := "-Xmn150m"
			if c.gc == "G1" { // its survivors take no fixed part: eden is about as large
				young = "-Xmn90m"
			}
			p := program{major: c.major, gc: c.gc, heap: "300m", main: "Drag", args: []string{"200"},
				opts: []string{c.opt, "-Xms300m", young, "-XX:SurvivorRatio=1", "-XX:-UseAdaptiveSizePolicy",
					"-XX:TargetSurvivorRatio=100", "-XX:MaxTenuringThreshold=15", "-XX:InitialTenuringThreshold=15"},
				flags: []string{"--drag", c.scope, "--sampling", "8KiB", "--shm-size", "64MiB"}, limit: "256MiB"}
			r := p.start(t)
			r.finish(t)
			out := r.stdout.String() + r.stderr.String()
			if strings.Contains(out, "WARNING in native") || !changedClasses(c.scope).MatchString(out) {
				t.Fatal(out)
			}
			t.Log(dragLine.FindString(out))
			dir := r.recorded(t).dir
			verify(t, dir, 1)
			compareDrag(t, r.stdout.String(), dragBySite(t, dir), c.scope == "all")
			if t.Failed() {
				rows, _, _ := heapcam(t, "drag", "--top", "0", dir)
				t.Log(rows)
			}
		})
	}
}

// TestDragFinalizers: HotSpot does not register an object whose finalizer is empty, and so it stays with --drag.
func TestDragFinalizers(t *testing.T) {
	t.Parallel()
	p := program{major: 17, gc: "Parallel", heap: "64m", main: "Finals", flags: []string{"--drag", "app"}}
	r := p.start(t)
	r.finish(t)
	if out := r.stdout.String(); !strings.Contains(out, "held 1000 registered few") {
		t.Errorf("%s\n%s", out, r.stderr.String())
	}
}

// TestDragContended: a check of an object whose lock another thread makes a monitor of reads nothing that is not there.
func TestDragContended(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"-Xint", "-Xmixed"} {
		t.Run(mode, func(t *testing.T) {
			p := program{major: 17, gc: "Parallel", heap: "64m", main: "Contended", args: []string{"300"},
				opts: []string{mode}, flags: []string{"--drag", "app"}}
			r := p.start(t)
			r.finish(t)
		})
	}
}

// TestDragBeside: virtual threads run with all classes changed; a program with a security manager is left alone, since
// that is asked for the helper, and its code would need it for the answer.
func TestDragBeside(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, says string
		p          program
	}{
		{"virtual threads", "classes with", program{major: 25, main: "Virtual", args: []string{"30"},
			flags: []string{"--drag", "all", "--sampling", "8KiB"}}},
		{"a security manager", "drag: off: the program has a security manager", program{major: 17, main: "Collect",
			args: []string{"5"}, opts: []string{"-Djava.security.manager"}, flags: []string{"--drag", "all"}}},
		{"a security manager and sites", "exact sites: off: the program has a security manager", program{major: 17,
			main: "Collect", args: []string{"5"}, opts: []string{"-Djava.security.manager"},
			flags: []string{"--sites", "exact"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.p
			p.gc, p.heap = "Parallel", "64m"
			r := p.start(t)
			r.finish(t)
			if !strings.Contains(r.stderr.String(), c.says) {
				t.Errorf("it does not say %q: %s", c.says, r.stderr.String())
			}
			verify(t, r.recorded(t).dir, 1)
		})
	}
}

var dragLine = regexp.MustCompile("heapcam: drag: .*")

// changedClasses is what the probe's line has where the program's three classes with code, or the JDK's too, were
// changed.
func changedClasses(scope string) *regexp.Regexp {
	if scope == "all" {
		return regexp.MustCompile(`drag: [0-9]{3,} classes with`)
	}
	return regexp.MustCompile(`drag: 3 classes with`)
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

// dragBySite gives the largest rows of a recording by the number of their site, makeN: a sample that was taken before
// its class was known has another one.
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
			if name := strings.TrimPrefix(x.Site[0].Method, "make"); x.Bytes >= by[name].Bytes {
				by[name] = x
			}
		}
	}
	return by
}

// compareDrag compares with what the program printed: lines "site N bytes bytes×seconds". jdk: also what the JDK makes
// for site 8.
func compareDrag(t *testing.T, printed string, by map[string]dragRow, jdk bool) {
	t.Helper()
	lines := regexp.MustCompile(`(?m)^site (\d) (\d+) (\d+)$`).FindAllStringSubmatch(printed, -1)
	if len(lines) != 9 {
		t.Fatalf("%d sites", len(lines))
	}
	for _, l := range lines {
		bytes, _ := strconv.ParseFloat(l[2], 64)
		drag, _ := strconv.ParseFloat(l[3], 64)
		compareSite(t, l[1], by[l[1]], bytes, drag)
		if l[1] == "8" && jdk {
			compareSite(t, "newNode", by["newNode"], bytes*32/48, drag*32/48)
			compareSite(t, "resize", by["resize"], bytes*80/48, drag*80/48)
		}
	}
}

func compareSite(t *testing.T, site string, x dragRow, bytes, drag float64) {
	t.Helper()
	said := fmt.Sprintf("site %s: %.1f MB, drag %.2f MB·s (%.2f to %.2f); it had %.1f and %.2f", site, x.Bytes/1e6,
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
