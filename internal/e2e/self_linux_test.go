package e2e

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent"
)

// TestAgentBound records three JVMs at depth full, of which two cost the agent far more than it may take: they are compressed less and lowered until it keeps its bound, the
// quiet one keeps what it has, all go on, and what was recorded verifies.
func TestAgentBound(t *testing.T) {
	if !full {
		t.Skip("not run: half a minute of what the agent itself may take (make test-full)")
	}
	const bound = 0.04 // of a core; finding JVMs, looking at rings and status take half of that
	d := newDaemon(t, "--depth", "full", "--sampling", "64k", "--compression", "full", "--agent-max-cpu", strconv.FormatFloat(100*bound, 'g', -1, 64)+"%",
		"--agent-max-memory", "512MiB", "--max-sync-pause", "0")
	d.start(t)
	file := filepath.Join(t.TempDir(), "end")
	var all []*running
	for i, args := range [][]string{{file, "100000", "2000", "200000", "0"}, {file, "1", "100000", "4000000", "1000"}, {file, "1", "100000", "4000000", "1000"}} {
		p := program{major: 17, gc: []string{"Serial", "G1", "Parallel"}[i], heap: "64m", main: "Tides", args: args, timeout: 3 * time.Minute}
		r := p.plain(t)
		await(t, "pid", func() bool { return r.pid() > 0 })
		if errs, code := d.attach(t, r.pidText()); code != 0 {
			t.Fatalf("attach: status %d: %s", code, errs)
		}
		all = append(all, r)
	}
	quiet := func() (s agent.Status, loud []agent.Status, self agent.Self) {
		st := d.status(t)
		for _, j := range st.JVMs {
			if j.PID == all[0].pid() {
				s = j
			} else {
				loud = append(loud, j)
			}
		}
		return s, loud, *st.Self
	}
	begun, highest := time.Now(), 0.0
	await(t, "the loud ones are lowered and the bound is kept", func() bool {
		time.Sleep(time.Second) // being asked costs the agent something too
		_, loud, self := quiet()
		highest = max(highest, self.CPU)
		told := 0
		for _, s := range loud {
			if strings.Contains(s.LastSwitch, "agent_max_cpu leaves it") {
				told++
			}
		}
		return told > 0 && self.CPU < bound
	})
	lowered := time.Since(begun)
	_, _, from := quiet()
	time.Sleep(5 * time.Second)
	q, loud, to := quiet()
	share := float64(to.CPUNS-from.CPUNS) / 5e9
	for _, s := range loud {
		t.Log(s.LastSwitch)
	}
	t.Logf("at first %.1f %% of a core, after %v %.1f %%, may %.1f %%; memory %d MiB; %v, %v", 100*highest, lowered.Round(time.Second), 100*share, 100*bound, to.Memory>>20, q.Depth,
		[]string{loud[0].Depth, loud[1].Depth})
	if share > 1.2*bound {
		t.Errorf("the agent takes %.1f %% of a core, may take %.1f %%", 100*share, 100*bound)
	}
	if q.Depth != "full" || strings.Contains(q.LastSwitch, "agent_max_cpu") {
		t.Errorf("the quiet JVM, %.2f s of CPU, is at depth %s: %s", float64(q.AgentCPUNS)/1e9, q.Depth, q.LastSwitch)
	}
	for _, s := range loud {
		if s.AgentCPUNS < q.AgentCPUNS {
			t.Errorf("%s: %.2f s of CPU, the quiet one %.2f s; %s", s.ID, float64(s.AgentCPUNS)/1e9, float64(q.AgentCPUNS)/1e9, s.LastSwitch)
		}
	}
	for _, r := range all {
		r.end(t, file)
	}
	d.stop(t)
	for _, rec := range d.recordings() {
		verify(t, rec, 0)
	}
}
