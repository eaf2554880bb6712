package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/tiers"
	"github.com/heapcam/heapcam/shmring"
)

// ringCapacity is the size of the largest ring of what a heapcam run records; 0: none.
func ringCapacity(run int) (n uint64) {
	for _, below := range []string{"", "*/"} {
		files, _ := filepath.Glob(fmt.Sprintf("/dev/shm/heapcam-run-%d-*/%sheapcam-*.ring*", run, below))
		for _, f := range files {
			if st, err := os.Stat(f); err == nil && st.Size() > shmring.HeaderSize {
				n = max(n, uint64(st.Size())-shmring.HeaderSize)
			}
		}
	}
	return n
}

// TestRingGrows records heaps that outgrow a ring of 4 MiB: larger ones take over, nothing is lost, and what is
// replayed agrees with the sync points. Also where the data cannot be mapped twice, as with pages larger than the
// header or on Windows.
func TestRingGrows(t *testing.T) {
	tiers.Gate(t, "shared rings that grow")
	t.Parallel()
	for _, c := range []struct{ name, depth, probe string }{
		{"survivors", "survivors", ""}, {"unmirrored", "survivors", "unmirrored=1"}, {"full", "full", ""},
	} {
		if !full && c.name == "full" { // where the first ring has 16 MiB
			continue
		}
		somePair(t, "TestRingGrows "+c.name, []int{17, 25}, collectors, func(t *testing.T, major int, gc string) {
			t.Run(c.name, func(t *testing.T) {
				p := program{major: major, gc: gc, heap: "768m", main: "Swell", args: []string{"6000", "60"},
					limit: "256MiB",
					probe: c.probe,
					flags: []string{"--depth", c.depth, "--max-sync-pause", "0"}, opts: []string{"-Xmn64m"}}
				r := p.start(t)
				first, most := uint64(0), uint64(0)
				ended := make(chan struct{})
				go func() { r.cmd.Wait(); close(ended) }()
				for running := true; running; {
					select {
					case <-ended:
						running = false
					case <-time.After(20 * time.Millisecond):
					}
					if size := ringCapacity(r.cmd.Process.Pid); size > 0 {
						most = max(most, size)
						if first < 4<<20 { // none yet, or one that is still being made
							first = size
						}
					}
				}
				if code := r.cmd.ProcessState.ExitCode(); code != 0 {
					t.Fatalf("status %d", code)
				}
				t.Logf("%s/%d: %d bytes first, %d at most", gc, major, first, most)
				if c.depth == "survivors" && first != 4<<20 || most <= first || most > 64<<20 {
					t.Errorf("the ring had %d bytes first and %d at most", first, most)
				}
				rec := r.recorded(t)
				// a heap that fills within a second, on a busy machine: what came while the ring was too small is
				// counted
				if rec.lost > 2 {
					t.Errorf("%d collections lost", rec.lost)
				}
				verify(t, rec.dir, 1)
				left, err := filepath.Glob(fmt.Sprintf("/dev/shm/heapcam-run-%d-*", r.cmd.Process.Pid))
				if err != nil || len(left) > 0 {
					t.Errorf("rings are left: %v %v", left, err)
				}
			})
		})
	}
}
