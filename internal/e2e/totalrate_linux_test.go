package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTotalRate records three JVMs, of which two write far more than what all may together: they are lowered until the
// sum stays within it, the small one keeps its depth, and all go on.
func TestTotalRate(t *testing.T) {
	if !full {
		t.Skip("not run: a minute and a half of writing (make test-full)")
	}
	const limit = 256 << 10
	d := newDaemon(t, "--depth", "full", "--compression", "none", "--max-total-write-rate", "256KiB")
	d.start(t)
	file := filepath.Join(t.TempDir(), "end")
	var all []*running
	for i, args := range [][]string{{file, "100000", "5000", "500000", "0"}, {file, "2", "200000", "8000000", "1000"},
		{file, "2", "200000", "8000000", "1000"}} {
		p := program{major: 17, gc: []string{"Serial", "G1", "Parallel"}[i], heap: "128m", main: "Tides", args: args,
			timeout: 5 * time.Minute}
		r := p.plain(t)
		await(t, "pid", func() bool { return r.pid() > 0 })
		if errs, code := d.attach(t, r.pidText()); code != 0 {
			t.Fatalf("attach: status %d: %s", code, errs)
		}
		all = append(all, r)
	}
	look := func() (written int64, small, depth []string, why string, gcs uint64) {
		for _, s := range d.status(t).JVMs {
			written += s.WrittenBytes
			depth = append(depth, s.Name+" "+s.Depth)
			why += s.DepthWhy
			if s.PID == all[0].pid() {
				small = append(small, s.Depth)
			}
			gcs += s.Collections
		}
		return
	}
	time.Sleep(30 * time.Second)
	from, _, _, _, gcs := look()
	begun := time.Now()
	time.Sleep(60 * time.Second)
	to, small, depth, why, gcs2 := look()
	rate := float64(to-from) / time.Since(begun).Seconds()
	t.Logf("%.0f bytes a second, may be %d; %v", rate, limit, depth)
	if rate > limit {
		t.Errorf("together they write %.0f bytes a second, may %d", rate, limit)
	}
	if len(small) != 1 || small[0] != "full" {
		t.Errorf("the JVM that writes little is at depth %v", small)
	}
	if !strings.Contains(why, "max_total_write_rate allows") {
		t.Errorf("no JVM was lowered: %v %s", depth, why)
	}
	if gcs2 <= gcs {
		t.Error("nothing is recorded any more")
	}
	for _, r := range all {
		r.end(t, file)
	}
	d.stop(t)
	for _, rec := range d.recordings() {
		verify(t, rec, 1)
	}
}
