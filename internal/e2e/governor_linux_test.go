package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/governor"
	"github.com/heapcam/heapcam/agent/session"
)

// TestGovernor records at depth full a program whose allocation and survival swing by fifty times. No minute after the
// first ten seconds costs more than the budget, and no ten seconds more than their budget and that of governor.Slack,
// which may have been saved.
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
			worst, minute, longest := 0.0, 0.0, uint64(0)
			share := func(over time.Duration) float64 { // of the newest stretch that long; 0: not so long yet
				last := looks[len(looks)-1]
				for i := len(looks) - 1; i >= 0; i-- {
					if dt := last.at.Sub(looks[i].at); dt >= over {
						return float64(last.cost-looks[i].cost) / float64(dt)
					}
				}
				return 0
			}
			for begin := time.Now(); time.Since(begin) < 90*time.Second; time.Sleep(200 * time.Millisecond) {
				s = find()
				now := time.Now()
				depths[s.Depth]++
				longest = max(longest, s.LongestSyncNS)
				if now.Sub(begin) < 10*time.Second {
					continue
				}
				looks = append(looks, look{now, s.ProbeNS + s.SampleNS})
				worst, minute = max(worst, share(10*time.Second)), max(minute, share(time.Minute))
			}
			total := float64(looks[len(looks)-1].cost-looks[0].cost) / float64(looks[len(looks)-1].at.Sub(looks[0].at))
			t.Logf("budget %v %%: %.2f %% on the whole, %.2f %% in the worst minute, %.2f %% in the worst ten "+
				"seconds; longest sync point %v; %d switches; depths seen %v; last: %s",
				budget, 100*total, 100*minute, 100*worst, time.Duration(longest), s.Switches, depths, s.LastSwitch)
			if most := budget * (10*time.Second + governor.Slack).Seconds() / 10; 100*worst > most {
				t.Errorf("ten seconds cost %.2f %%; with what was saved %.2f %% may be spent", 100*worst, most)
			}
			if 100*minute > budget {
				t.Errorf("a minute cost %.2f %%, the budget is %v %%", 100*minute, budget)
			}
			dir := s.Dir
			r.end(t, file)
			d.stop(t)
			verify(t, dir, 1)
		})
	}
}
