package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

// TestTides is TestGovernor with more to walk and 32 times the samples: it keeps budgets of 1, 2 and 5 % under a
// program whose allocation and survival swing by fifty, at depth full and with every 16 KiB sampled: by the probe's own
// clock no minute after the first ten seconds costs more than 1.2 times the budget, sync points keep their limit, and
// the depth comes back to full when it calms.
func TestTides(t *testing.T) {
	needReader(t)
	if !full {
		t.Skip("not run: budgets under a load that swings (make test-full)")
	}
	const (
		length = 80 * time.Second // of four phases
		every  = 250 * time.Millisecond
		span   = time.Minute
	)
	for _, gc := range []string{"G1", "Parallel"} {
		for _, budget := range []int{1, 2, 5} {
			t.Run(fmt.Sprintf("%s/%d", gc, budget), func(t *testing.T) {
				d := newDaemon(t, "--overhead-cpu", fmt.Sprintf("%d%%", budget), "--depth", "full", "--sampling", "16k",
					"--max-trace-size", "256MiB")
				d.start(t)
				file := filepath.Join(t.TempDir(), "end")
				p := program{major: 17, gc: gc, heap: "512m", main: "Tides",
					args:    []string{file, "20", "1000000", "8000000", "4"},
					timeout: 4 * length}
				r := p.plain(t)
				await(t, "pid", func() bool { return r.pid() > 0 })
				if errs, code := d.attach(t, r.pidText()); code != 0 {
					t.Fatalf("attach: status %d: %s", code, errs)
				}
				type point struct {
					at           time.Time
					cost, sample uint64
				}
				var points []point
				depths := map[string]int{}
				worst, mean, worstAt, sampling := 0.0, 0.0, time.Duration(0), 0.0
				begun := time.Now()
				ring, err := shmring.Open(ringOf(t, d), shmring.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer ring.Close()
				back := false
				for !back && time.Since(begun) < 3*length {
					h, err := ring.Status()
					if err != nil {
						t.Fatal(err)
					}
					now := time.Now()
					points = append(points, point{now, h.ProbeNS + h.SampleNS, h.SampleNS})
					depths[session.DepthName(uint64(h.Depth))]++
					back = now.Sub(begun) > length && h.Depth == trace.DepthFull
					for len(points) > 1 && now.Sub(points[1].at) >= span {
						points = points[1:]
					}
					if first := points[0]; now.Sub(first.at) >= span && first.at.Sub(begun) >= 10*time.Second {
						if share := float64(h.ProbeNS+
							h.SampleNS-first.cost) / float64(now.Sub(first.at)); share > worst {
							worst, worstAt, sampling = share, now.Sub(begun),
								float64(h.SampleNS-first.sample)/float64(now.Sub(first.at))
						}
					}
					mean = float64(h.ProbeNS+h.SampleNS) / float64(now.Sub(begun))
					time.Sleep(every)
				}
				var s session.Status
				for _, s = range d.status(t).JVMs {
				}
				t.Logf("budget %d %%: worst minute %.2f %% (at %v, sampling %.2f %%), mean %.2f %%, %d switches, "+
					"time at depths "+
					"%v, full again after %v, longest sync point %v, %d collections", budget, 100*worst,
					worstAt.Round(time.Second), 100*sampling,
					100*mean, s.Switches, depths, time.Since(begun).Round(time.Second)-length,
					time.Duration(s.LongestSyncNS),
					s.Collections)
				if !back {
					t.Logf("the depth did not come back:\n%s", d.stderr.String())
				}
				if worst > 1.2*float64(budget)/100 {
					t.Errorf("a minute cost %.2f %%, the budget is %d %% (load average %.0f on %d processors: on a "+
						"busy machine a pause also waits for one)", 100*worst, budget, loadAverage(t), runtime.NumCPU())
				}
				if !back {
					t.Error("the depth did not come back to full")
				}
				if s.LongestSyncNS > uint64(250*time.Millisecond) {
					t.Errorf("a sync point took %v", time.Duration(s.LongestSyncNS))
				}
				r.end(t, file)
				d.stop(t)
				verify(t, s.Dir, 1)
			})
		}
	}
}

// loadAverage gives that of the last minute.
func loadAverage(t *testing.T) (n float64) {
	t.Helper()
	b, err := os.ReadFile("/proc/loadavg")
	if _, err2 := fmt.Sscan(string(b), &n); err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	return n
}

// ringOf gives the path of the only ring.
func ringOf(t *testing.T, d *daemon) string {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(d.rings, "*", "*.ring"))
	if len(paths) != 1 {
		t.Fatalf("rings: %v", paths)
	}
	return paths[0]
}
