package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/tiers"
)

// TestRefusedAttach loads the probe into JVMs that it refuses, twice. A JVM unloads a library that it was refused by;
// nothing of the probe may be called then, and the program ends as it does without.
func TestRefusedAttach(t *testing.T) {
	tiers.Gate(t, "JVMs that the probe refuses when it is attached")
	type pair struct {
		major int
		gc    string
	}
	for _, c := range parts(t, pair{17, "Serial"}, pair{25, "G1"}) {
		t.Run(fmt.Sprintf("%s/%d", c.gc, c.major), func(t *testing.T) {
			t.Parallel()
			end := filepath.Join(t.TempDir(), "end")
			cmd := exec.Command(filepath.Join(jdk(t, c.major), "bin", "java"), "-Xmx64m", "-XX:+Use"+c.gc+"GC", "-cp",
				classPath(t), "Steady", "30000", "60000", end)
			// in the environment, where doctor does not see it
			cmd.Env = append(os.Environ(), "JDK_JAVA_OPTIONS=-XX:-UsePerfData")
			var said strings.Builder
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(1500 * time.Millisecond)
			for range 2 {
				out := filepath.Join(t.TempDir(), "rec")
				if _, errs, code := heapcam(t, "record", "--out", out, strconv.Itoa(cmd.Process.Pid)); code != 5 {
					t.Errorf("status %d: %s", code, errs)
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("the program ends with %v:\n%s", err, tail(said.String()))
			}
		})
	}
}

// TestKilledRecord kills `heapcam record`. The next one continues in the same recording; one beside it is refused.
func TestKilledRecord(t *testing.T) {
	tiers.Gate(t, "a recorder that was killed")
	p := program{major: 17, gc: "Serial", heap: "64m", main: "Steady", args: []string{"3000000", "20000"}}
	r := p.plain(t)
	pid, out := strconv.Itoa(r.cmd.Process.Pid), filepath.Join(t.TempDir(), "rec")
	time.Sleep(time.Second)
	first := exec.Command(tool, "record", "--out", out, pid)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	recorded := func() bool {
		dirs, _ := filepath.Glob(filepath.Join(out, "*", "recording.json"))
		return len(dirs) == 1
	}
	await(t, "a recording", recorded)
	time.Sleep(time.Second)
	if _, _, code := heapcam(t, "record", "--for", "1s", "--out", out, pid); code == 0 {
		t.Error("two recorders of one JVM")
	}
	_ = first.Process.Kill()
	_ = first.Wait()
	if _, errs, code := heapcam(t, "record", "--for", "2s", "--out", out, pid); code != 0 || !recorded() {
		t.Fatalf("status %d: %s", code, errs)
	}
	dirs, _ := filepath.Glob(filepath.Join(out, "*"))
	verify(t, dirs[0], 1)
}

// TestFailedRecord: a `heapcam record` that cannot store its recording leaves no probe that runs. The next one records.
func TestFailedRecord(t *testing.T) {
	tiers.Gate(t, "a recorder that fails once the probe is loaded")
	p := program{major: 17, gc: "Serial", heap: "64m", main: "Steady", args: []string{"3000000", "20000"}}
	r := p.plain(t)
	pid, out := strconv.Itoa(r.cmd.Process.Pid), filepath.Join(t.TempDir(), "rec")
	time.Sleep(time.Second)
	j, err := jvms.Inspect(r.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	taken := filepath.Join(out, session.FolderName(agent.ProcessName(j.PID), j.PID, j.StartTicks))
	if err := os.MkdirAll(out, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := heapcam(t, "record", "--for", "1s", "--out", out, pid); code != 2 {
		t.Fatalf("status %d: %s", code, errs)
	}
	if m, _ := os.ReadFile("/proc/" + pid + "/maps"); strings.Contains(string(m), ".ring") {
		t.Errorf("the JVM still has a ring:\n%s", m)
	}
	if err := os.Remove(taken); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := heapcam(t, "record", "--for", "2s", "--out", out, pid); code != 0 {
		t.Fatalf("status %d: %s", code, errs)
	}
	verify(t, taken, 1)
}

// TestStoppedRecord stops a `heapcam record` until its JVM has ended in order. The ring was full by then: the recording
// ends with the JVM all the same, and all verbs count what was lost alike.
func TestStoppedRecord(t *testing.T) {
	tiers.Gate(t, "a recorder that was stopped")
	p := program{major: 17, gc: "Serial", heap: "64m", main: "Steady", args: []string{"250000", "20000"}}
	r := p.plain(t)
	out := filepath.Join(t.TempDir(), "rec")
	time.Sleep(time.Second)
	c := exec.Command(tool, "record", "--shm-size", "1MiB", "--out", out, strconv.Itoa(r.cmd.Process.Pid))
	var said strings.Builder
	c.Stderr = &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "a recording", func() bool {
		dirs, _ := filepath.Glob(filepath.Join(out, "*", "recording.json"))
		return len(dirs) == 1
	})
	time.Sleep(time.Second)
	_ = c.Process.Signal(syscall.SIGSTOP)
	r.cmd.Wait()
	_ = c.Process.Signal(syscall.SIGCONT)
	if err := c.Wait(); err != nil || strings.Contains(said.String(), "no end marker") {
		t.Errorf("%v: %s", err, said.String())
	}
	var rep struct {
		Ending string `json:"ending"`
		Lost   uint64 `json:"lost_epochs"`
	}
	var st struct {
		JVMs []struct {
			Dropped session.Drops `json:"dropped"`
		} `json:"jvms"`
	}
	heapcamJSON(t, &rep, "report", out)
	heapcamJSON(t, &st, "status", "--out", out)
	if rep.Ending != "jvm" || rep.Lost == 0 || len(st.JVMs) != 1 || st.JVMs[0].Dropped.RingEpochs != rep.Lost {
		t.Errorf("report %+v, status %+v", rep, st)
	}
}
