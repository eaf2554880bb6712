package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/session"
)

// TestCrowd starts a hundred JVMs within a minute below one agent that discovers: every one is recorded, none is lost,
// and what the agent takes of CPU, memory and descriptors is reported (and bounded: a core, 4 MB and 12 descriptors a
// JVM).
func TestCrowd(t *testing.T) {
	needReader(t)
	if !full {
		t.Skip("not run: a hundred JVMs on one agent (make test-full)")
	}
	const n = 100
	d, mark := discoverer(t, "--max-trace-size", "4MiB", "--emergency", "off", "--overhead-cpu", "2%")
	d.start(t)
	file := filepath.Join(t.TempDir(), "end")
	if free := number(t, "/proc/meminfo", "MemAvailable:"); free < n*90<<10 {
		t.Skipf("not run: a hundred JVMs on one agent (%d MiB are free)", free>>10)
	}
	idle := cpu(t, d.cmd.Process.Pid)
	begun := time.Now()
	var all []*running
	for i := range n {
		p := program{major: 17, gc: "Serial", heap: "16m", main: "Tides",
			args: []string{file, "100000", "5000", "500000", "0"}, timeout: 15 * time.Minute,
			opts: []string{mark, "-Xss256k", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=8m",
				"-XX:CICompilerCount=1"}}
		all = append(all, p.plain(t))
		if left := time.Until(begun.Add(time.Duration(i) * 55 * time.Second / n)); left > 0 {
			time.Sleep(left)
		}
	}
	started := time.Since(begun)
	recorded := func() (n int) {
		for _, s := range d.status(t).JVMs {
			if s.Phase == session.Recording {
				n++
			}
		}
		return n
	}
	for end := time.Now().Add(3 * time.Minute); recorded() < n && time.Now().Before(end); {
		time.Sleep(250 * time.Millisecond)
	}
	after := time.Since(begun)
	if r := recorded(); r != n {
		for _, o := range d.status(t).Others {
			if !o.Ignored {
				t.Logf("%+v", o)
			}
		}
		t.Errorf("%d of %d JVMs are recorded", r, n)
	}
	steadyFrom, steadyCPU := time.Now(), cpu(t, d.cmd.Process.Pid)
	joining := float64(steadyCPU-idle) / 100 / after.Seconds()
	time.Sleep(30 * time.Second)
	steady := float64(cpu(t, d.cmd.Process.Pid)-steadyCPU) / 100 / time.Since(steadyFrom).Seconds()
	rss := number(t, fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid), "VmRSS:")
	threads := number(t, fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid), "Threads:")
	fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.cmd.Process.Pid))
	lost, gcs, rings, written := uint64(0), uint64(0), uint64(0), int64(0)
	for _, s := range d.status(t).JVMs {
		lost += s.Dropped.RingEpochs + s.Dropped.StoreEpochs
		gcs += s.Collections
		written += s.TraceBytes
		rings += s.RingBytes
	}
	t.Logf("%d MiB of shared rings", rings>>20)
	t.Logf("%d JVMs started in %v, all recorded after %v; the agent took %.2f cores meanwhile, %.2f after; %d MiB, %d "+
		"threads, %d descriptors; %d collections, %d lost, %d MiB on disk", n,
		started.Round(time.Second), after.Round(time.Second), joining, steady, rss>>10, threads, len(fds), gcs,
		lost, written>>20)
	if steady > 1 {
		t.Errorf("the agent takes %.2f cores", steady)
	}
	if rss>>10 > 100+4*n {
		t.Errorf("the agent takes %d MiB", rss>>10)
	}
	if len(fds) > 100+12*n {
		t.Errorf("the agent has %d descriptors", len(fds))
	}
	if lost > 0 {
		t.Errorf("%d collections were lost", lost)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		r.cmd.Wait()
	}
	await(t, "the ends", func() bool { return recorded() == 0 })
	for _, s := range d.status(t).JVMs {
		if s.Phase != session.EndedPhase {
			t.Errorf("%s: %s %s", s.ID, s.Phase, s.Reason)
		}
	}
	d.stop(t)
}

// number gives the number behind a key in a file of /proc.
func number(t *testing.T, file, key string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, key); ok {
			n, _ := strconv.Atoi(strings.Fields(v)[0])
			return n
		}
	}
	t.Fatalf("%s has no %s", file, key)
	return 0
}

// cpu gives the CPU time of a process, in hundredths of a second.
func cpu(t *testing.T, pid int) int {
	t.Helper()
	n, err := cpuTime(pid)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func cpuTime(pid int) (int, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	u, _ := strconv.Atoi(f[11])
	s, _ := strconv.Atoi(f[12])
	return u + s, nil
}
