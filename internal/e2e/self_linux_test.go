package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/agent/session"
)

// TestAgentBound records three JVMs at depth full, of which two cost the agent far more than it may take: they are
// compressed less and lowered until it keeps its bound, the quiet one keeps what it has, all go on, and what was
// recorded verifies.
func TestAgentBound(t *testing.T) {
	if !full {
		t.Skip("not run: half a minute of what the agent itself may take (make test-full)")
	}
	const bound = 0.04 // of a core; finding JVMs, looking at rings and status take half of that
	d := newDaemon(t, "--depth", "full", "--sampling", "64k", "--compression", "full", "--agent-max-cpu",
		strconv.FormatFloat(100*bound, 'g', -1, 64)+"%",
		"--agent-max-memory", "512MiB", "--max-sync-pause", "0")
	d.start(t)
	file := filepath.Join(t.TempDir(), "end")
	var all []*running
	for i, args := range [][]string{{file, "100000", "2000", "200000", "0"}, {file, "1", "100000", "4000000", "1000"},
		{file, "1", "100000", "4000000", "1000"}} {
		p := program{major: 17, gc: []string{"Serial", "G1", "Parallel"}[i], heap: "64m", main: "Tides", args: args,
			timeout: 3 * time.Minute}
		r := p.plain(t)
		await(t, "pid", func() bool { return r.pid() > 0 })
		if errs, code := d.attach(t, r.pidText()); code != 0 {
			t.Fatalf("attach: status %d: %s", code, errs)
		}
		all = append(all, r)
	}
	quiet := func() (s session.Status, loud []session.Status, self quota.Self) {
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
		lowered := 0
		for _, s := range loud {
			if strings.Contains(s.LastSwitch, "agent_max_cpu allows") {
				lowered++
			}
		}
		return lowered > 0 && self.CPU < bound
	})
	took := time.Since(begun)
	_, _, from := quiet()
	time.Sleep(5 * time.Second)
	q, loud, to := quiet()
	share := float64(to.CPUNS-from.CPUNS) / 5e9
	for _, s := range loud {
		t.Log(s.LastSwitch)
	}
	t.Logf("at first %.1f %% of a core, after %v %.1f %%, may %.1f %%; memory %d MiB; %v, %v", 100*highest,
		took.Round(time.Second), 100*share, 100*bound, to.Memory>>20, q.Depth,
		[]string{loud[0].Depth, loud[1].Depth})
	if share > 1.2*bound {
		t.Errorf("the agent takes %.1f %% of a core, may take %.1f %%", 100*share, 100*bound)
	}
	if q.Depth != "full" || strings.Contains(q.LastSwitch, "agent_max_cpu") {
		t.Errorf("the quiet JVM, %.2f s of CPU, is at depth %s: %s", float64(q.AgentCPUNS)/1e9, q.Depth, q.LastSwitch)
	}
	for _, s := range loud {
		if s.AgentCPUNS < q.AgentCPUNS {
			t.Errorf("%s: %.2f s of CPU, the quiet one %.2f s; %s", s.ID, float64(s.AgentCPUNS)/1e9,
				float64(q.AgentCPUNS)/1e9, s.LastSwitch)
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

// TestAgentMemory has one agent record three JVMs that together take more of its memory than it may hold: its own
// memory stays within the bound, status and metrics report an evicted recording, which resumes when there is room, the
// others go on, and what was recorded verifies.
func TestAgentMemory(t *testing.T) {
	if !full {
		t.Skip("not run: a minute of what the agent itself may hold (make test-full)")
	}
	const bound = 96 << 20
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	scrape := l.Addr().String()
	l.Close()
	d := newDaemon(t, "--depth", "full", "--sampling", "64k", "--compression", "full", "--agent-max-memory", "96MiB",
		"--max-sync-pause", "0", "--metrics", scrape)
	d.start(t)
	file := filepath.Join(t.TempDir(), "end")
	var all []*running
	for i := range 3 { // all at once
		p := program{major: 17, gc: collectors[i], heap: "96m", opts: []string{d.option(t)}, main: "Tides",
			args: []string{file, "1", "100000", "4000000", "1000"}, timeout: 5 * time.Minute}
		all = append(all, p.plain(t))
	}
	most, rss, dropped, refused, left := int64(0), int64(0), api.Other{}, false, false
	look := func() api.StatusReply {
		own, with := resident(t, d.cmd.Process.Pid)
		most, rss = max(most, own), max(rss, with)
		st := d.status(t)
		for _, o := range st.Others {
			if o.Why == "agent memory" && o.PID != 0 {
				dropped = o
				refused = refused || strings.Contains(o.Reason, "leaves no room for another recording")
				left = left || strings.Contains(o.Reason, "this recording held the most memory")
			}
		}
		return st
	}
	await(t, "one is not recorded for want of memory", func() bool { look(); return dropped.PID != 0 })
	if dropped.Name != "Tides" || dropped.Remedy == "" {
		t.Errorf("%+v", dropped)
	}
	resp, err := http.Get("http://" + scrape + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil ||
		!regexp.MustCompile(`(?m)^heapcam_jvms_not_recorded\{why="agent memory"\} [1-3]$`).Match(b) {
		t.Errorf("the metrics do not show it: %v\n%s", err,
			regexp.MustCompile(`(?m)^heapcam_jvms_not_recorded.*$`).FindAll(b, -1))
	}
	// the evicted recording is tried again meanwhile
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		look()
	}
	n := func() (n uint64) {
		for _, s := range look().JVMs {
			n += s.Collections
		}
		return n
	}
	was := n()
	await(t, "somebody is recorded", func() bool { return n() > was })
	st := look()
	for _, s := range st.JVMs {
		t.Logf("%s: %s, %d collections, %+v", s.ID, s.Phase, s.Collections, s.Dropped)
	}
	t.Logf("not begun for want of memory: %v, let go of: %v; %d MiB of the agent's own at most, %d MiB with "+
		"its program "+
		"and the shared rings; now %+v", refused, left, most>>20, rss>>20, *st.Self)
	if most > bound {
		t.Errorf("the agent held %d MiB, may hold %d", most>>20, bound>>20)
	}
	for _, r := range all {
		r.end(t, file)
	}
	d.stop(t)
	for _, rec := range d.recordings() {
		verify(t, rec, 0)
	}
}

// resident gives what a process has in memory, bytes: of its own, and all of it.
func resident(t *testing.T, pid int) (own, all int64) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^(RssAnon|VmRSS):\s+(\d+) kB$`).FindAllStringSubmatch(string(b), -1) {
		n, _ := strconv.ParseInt(m[2], 10, 64)
		if m[1] == "RssAnon" {
			own = n << 10
		} else {
			all = n << 10
		}
	}
	return own, all
}
