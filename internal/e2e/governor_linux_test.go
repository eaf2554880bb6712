package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/session"
)

// TestGovernor records at depth full a program whose allocation and survival swing by fifty times, and holds what that
// cost over any ten seconds against the budget and a fifth more. In the calm the depth comes back.
func TestGovernor(t *testing.T) {
	if !full {
		t.Skip("not run: the governor at its budgets, a minute and a half each (make test-full)")
	}
	for _, budget := range []float64{1, 2, 5} {
		t.Run(fmt.Sprintf("%v%%", budget), func(t *testing.T) {
			d := newDaemon(t, "--overhead-cpu", fmt.Sprintf("%v%%", budget), "--depth", "full")
			d.start(t)
			file := filepath.Join(t.TempDir(), "end")
			p := program{major: 17, gc: "G1", heap: "128m", main: "Swing", args: []string{file, "15"}}
			r := p.plain(t)
			await(t, "pid", func() bool { return r.pid() > 0 })
			if errs, code := d.attach(t, r.pidText()); code != 0 {
				t.Fatalf("attach: status %d: %s", code, errs)
			}
			find := func() session.Status {
				for _, s := range d.status(t).JVMs {
					if s.PID == r.pid() {
						return s
					}
				}
				return session.Status{}
			}
			type look struct {
				at   time.Time
				cost uint64
			}
			var looks []look
			depths := map[string]int{}
			var s session.Status
			worst, longest := 0.0, uint64(0)
			for begin := time.Now(); time.Since(begin) < 90*time.Second; time.Sleep(200 * time.Millisecond) {
				s = find()
				now := time.Now()
				looks = append(looks, look{now, s.ProbeNS + s.SampleNS})
				depths[s.Depth]++
				longest = max(longest, s.LongestSyncNS)
				if now.Sub(begin) < 20*time.Second { // any ten seconds after the first ten
					continue
				}
				for i := len(looks) - 1; i >= 0; i-- {
					if dt := now.Sub(looks[i].at); dt >= 10*time.Second {
						worst = max(worst, float64(looks[len(looks)-1].cost-looks[i].cost)/float64(dt))
						break
					}
				}
			}
			total := float64(looks[len(looks)-1].cost-looks[0].cost) / float64(looks[len(looks)-1].at.Sub(looks[0].at))
			t.Logf("budget %v %%: %.2f %% on the whole, %.2f %% over the worst ten seconds; longest sync point %v; %d "+
				"switches; depths seen %v; last: %s",
				budget, 100*total, 100*worst, time.Duration(longest), s.Switches, depths, s.LastSwitch)
			if 100*worst > 1.2*budget {
				t.Errorf("over ten seconds the probe cost %.2f %%, the budget is %v %%", 100*worst, budget)
			}
			dir := s.Dir
			r.end(t, file)
			d.stop(t)
			verify(t, dir, 1)
		})
	}
}
