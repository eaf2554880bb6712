package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestBigHeaps begins to record JVMs that hold millions of objects already. Their listing is complete after some
// collections. Each run logs a row for docs/benchmarks. HEAPCAM_BIG: thousands of objects, several with commas; without
// it, and in full length only, 10 million.
func TestBigHeaps(t *testing.T) {
	sizes := os.Getenv("HEAPCAM_BIG")
	if !full && sizes == "" {
		t.Skip("not run: heaps of millions of objects (make test-full)")
	}
	needReader(t)
	if sizes == "" {
		sizes = "10000"
	}
	for _, size := range strings.Split(sizes, ",") {
		thousands, err := strconv.Atoi(size)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(size, func(t *testing.T) {
			eachPair(t, []int{17, 25}, []string{"Serial", "Parallel", "G1"}, func(t *testing.T, major int, gc string) {
				bigHeap(t, major, gc, thousands)
			})
		})
	}
}

func bigHeap(t *testing.T, major int, gc string, thousands int) {
	p := program{major: major, gc: gc, heap: strconv.Itoa(600+thousands/14) + "m", opts: []string{"-Xmn192m"},
		main: "Big", args: []string{strconv.Itoa(thousands), "60"}}
	r := p.plain(t)
	for end := time.Now().Add(10 * time.Minute); !strings.Contains(r.stdout.String(), "built"); {
		if time.Now().After(end) {
			t.Fatal("the heap is not built within ten minutes")
		}
		time.Sleep(100 * time.Millisecond)
	}
	out := filepath.Join(t.TempDir(), "rec")
	if _, errs, code := heapcam(t, "record", "--out", out, "--max-trace-size", "1GiB", "--overhead-cpu", "0",
		strconv.Itoa(r.cmd.Process.Pid)); code != 0 {
		t.Fatalf("record: status %d: %s", code, errs)
	}
	dump, _, _ := heapcam(t, "dump", "--brief", out)
	row, complete := firstListing(t, dump)
	t.Logf("| %d | %s %d | %s |", thousands/1000, gc, major, row)
	if !complete && !strings.Contains(dump, "syncpoint gc=") {
		t.Error("no listing is complete")
	}
	if strings.Contains(dump, "depth=samples") {
		t.Error("a pause was recorded at depth samples")
	}
	verify(t, out, 0)
}

var (
	sliceLine    = regexp.MustCompile(`slice gc=(\d+) ramp=1 n=(\d+) reason=\w+ flags=(\S+).* time=(\d+) probe=(\d+)`)
	pauseOfSlice = regexp.MustCompile(`pause gc=(\d+) .* start=(\d+) dur=(\d+) probe=(\d+)`)
)

// firstListing describes the first listing in slices: collections, seconds until it was complete, the longest slice and
// the pause that had it, slices that took longer than allowed, and by how much at most (all ms).
func firstListing(t *testing.T, dump string) (row string, complete bool) {
	starts, durations := map[string]float64{}, map[string]float64{}
	for _, m := range pauseOfSlice.FindAllStringSubmatch(dump, -1) {
		starts[m[1]], durations[m[1]] = millis(t, m[2]), millis(t, m[3])
	}
	var first, last, longest, inPause, above float64
	n, over := 0, 0
	for _, m := range sliceLine.FindAllStringSubmatch(dump, -1) {
		at, ms := millis(t, m[4]), millis(t, m[5])
		if n++; n == 1 {
			first = at
		}
		last = at + ms
		may := max(10, (at-starts[m[1]])/5)
		if ms > longest {
			longest, inPause = ms, durations[m[1]]
		}
		if ms > may+1 {
			over++
			above = max(above, ms-may)
		}
		complete = complete || strings.Contains(m[3], "last")
	}
	return fmt.Sprintf("%d | %.1f | %.1f | %.0f | %d | %.1f", n, (last-first)/1000, longest, inPause, over,
		above), complete
}

func millis(t *testing.T, ns string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(ns, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n / 1e6
}
