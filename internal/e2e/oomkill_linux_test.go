package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/heapcam/heapcam/ringstore"
)

// killedIncident waits for the incident of a JVM that ended without an end marker, and gives its folder and reason.
func killedIncident(t *testing.T, out string) (dir, reason string) {
	t.Helper()
	n := &ringstore.Incidents{Dir: filepath.Join(out, "incidents")}
	await(t, "an incident", func() bool {
		all, err := n.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range all {
			if i.Cause == ringstore.CauseUnended {
				dir, reason = n.Path(i.ID), i.Reason
			}
		}
		return dir != ""
	})
	return dir, reason
}

// says checks that a verb's output, however its lines are broken, has the text.
func says(t *testing.T, want string, args ...string) {
	t.Helper()
	out, errs, code := heapcam(t, args...)
	if code != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
		t.Errorf("%v: status %d, no %q in\n%s%s", args, code, want, out, errs)
	}
}

// TestKilledAtLimit: the kernel kills a JVM whose memory outside the heap fills its cgroup. The incident says so first,
// and so does what reads the recording, or a copy of it.
func TestKilledAtLimit(t *testing.T) {
	t.Parallel()
	g := newMemoryGroup(t, "heapcam-test-killed")
	g.set(t, 192<<20)
	g.noSwap()
	dir := t.TempDir()
	out := filepath.Join(dir, "rec")
	major := someMajors(t.Name(), []int{17, 25})[0]
	args := append([]string{"run", "--out", out, "--max-trace-size", "4MiB", "--"}, g.wrap...)
	args = append(args, filepath.Join(jdk(t, major), "bin", "java"), "-Xmx48m", "-XX:MaxDirectMemorySize=1g", "-cp",
		classPath(t), "Outside", "900", "3000")
	var errs buffer
	c := exec.Command(tool, args...)
	c.Stderr = &errs
	if err := c.Run(); c.ProcessState.ExitCode() != 137 {
		t.Fatalf("%v: the kernel killed nothing: %s", err, &errs)
	}
	const why = "the kernel killed it because its memory cgroup reached its limit of 192 MiB " +
		"(most likely: the counter of kills of that cgroup rose); the heap was not full: "
	incident, reason := killedIncident(t, out)
	if !strings.HasPrefix(reason, "the JVM ended without an end marker; "+why) ||
		!strings.Contains(reason, " s before the end the process had ") {
		t.Errorf("the reason is %q", reason)
	}
	file := filepath.Join(dir, "copy.heapcam")
	if out, errs, code := heapcam(t, "pull", "--out", out, "--incident", filepath.Base(incident), "-o",
		file); code != 0 {
		t.Fatalf("pull: status %d\n%s%s", code, out, errs)
	}
	for _, from := range []string{incident, file} {
		says(t, "End no end marker; "+why, "report", from)
		says(t, `"killed": {`, "report", "--json", from)
	}
	says(t, why, "incidents", "show", "--out", out, filepath.Base(incident))
	says(t, "killed time=", "dump", file)
	verify(t, file, 1)
	rep, _, _ := heapcam(t, "report", "--json", file)
	var x struct {
		Killed struct {
			Scope string `json:"scope"`
			Limit int64  `json:"limit_bytes"`
		} `json:"killed"`
	}
	if err := json.Unmarshal([]byte(rep), &x); err != nil || x.Killed.Scope != "cgroup" || x.Killed.Limit != 192<<20 {
		t.Errorf("%+v, %v", x, err)
	}
}

// TestKilledGroupGone: the cgroup of the JVM that the kernel killed is gone when the agent finds the JVM dead, as
// runtimes of containers do it. The cgroup above it, or the machine, still says that something was killed.
func TestKilledGroupGone(t *testing.T) {
	t.Parallel()
	g := newMemoryGroup(t, "heapcam-test-above")
	g = g.child(t, "jvm")
	g.set(t, 192<<20)
	g.noSwap()
	d := newDaemon(t)
	d.start(t)
	fill := filepath.Join(t.TempDir(), "fill")
	p := program{major: 17, heap: "48m", main: "Outside", args: []string{"900", "60000", fill},
		opts: []string{d.withProbe(t, ""), "-XX:MaxDirectMemorySize=1g"}}
	r := p.plain(t, g.wrap...)
	await(t, "the first collections", func() bool {
		s := d.status(t).JVMs
		return len(s) == 1 && s[0].Collections > 5
	})
	if err := d.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	err := os.WriteFile(fill, nil, 0o600)
	if err == nil {
		_ = r.cmd.Wait()
		await(t, "an empty group", func() bool { return os.Remove(g.dir) == nil })
	}
	if e := d.cmd.Process.Signal(syscall.SIGCONT); err != nil || e != nil {
		t.Fatal(err, e)
	}
	if s, ok := r.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
		t.Fatalf("the kernel killed nothing: %s", r.cmd.ProcessState)
	}
	want := "the kernel killed a process of the cgroup above it for want of memory at about that time (its own " +
		"memory cgroup is gone; a limit of 192 MiB was reached); the heap was not full: "
	if strings.HasPrefix(g.dir, "/sys/fs/cgroup/memory/") {
		want = "the kernel killed a process for want of memory at about that time; the heap was not full: "
	}
	incident, reason := killedIncident(t, d.out)
	if !strings.HasPrefix(reason, "the JVM ended without an end marker; "+want) {
		t.Errorf("the reason is %q", reason)
	}
	says(t, "End no end marker; "+want, "report", incident)
}
