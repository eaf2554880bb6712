package e2e

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

//go:embed native/clock.c
var clockSource string

// TestJumpingClocks records JVMs whose wall clock jumps by an hour again and again.
func TestJumpingClocks(t *testing.T) {
	t.Parallel()
	lib, clock := probeLibrary(t), compiled(t, "libclock.so", clockSource, "-O1")
	rounds := 1
	if full {
		rounds = 3
	}
	for i := range rounds {
		a := assault{major: []int{17, 25}[i%2], gc: collectors[i%3], lib: lib, grow: full,
			probe: ",interval=4096", env: []string{"LD_PRELOAD=" + clock}}
		e := a.run(t)
		e.well(t, "jumping clocks")
	}
}

// TestLeavesDuringGrowth ends JVMs from within while their ring grows: their status is what it is without the probe.
func TestLeavesDuringGrowth(t *testing.T) {
	if !full {
		t.Skip("not run: JVMs that end themselves while their ring grows (make test-full)")
	}
	lib := probeLibrary(t)
	n := 0
	for _, c := range []struct {
		name string
		opts []string
		code int
	}{
		{"exit", nil, 7}, {"halt", nil, 7},
		{"oom", []string{"-XX:+ExitOnOutOfMemoryError"}, 3},
		{"oom", []string{"-XX:+CrashOnOutOfMemoryError"}, 1}, // no core is written here
		{"oom", nil, 1},
	} {
		for i := range 12 {
			n++
			a := assault{major: []int{17, 25}[i%2], gc: collectors[n%3], lib: lib, keep: true,
				probe: ",interval=4096,max_sync=50", opts: c.opts,
				main: []string{"Leave", c.name, strconv.Itoa(20_000 + 25_000*i)}}
			e := a.run(t)
			wanted := slices.Contains(c.opts, "-XX:+CrashOnOutOfMemoryError")
			if e.killed || e.code != c.code || e.lines() > 0 ||
				!wanted && strings.Contains(e.errs, "Problematic frame") {
				t.Errorf("%s %v (%s/%d): status %d, killed %v\n%s\n%s", c.name, c.opts, a.gc, a.major, e.code, e.killed,
					tail(e.out), tail(e.errs))
			}
		}
	}
}

// TestTwoBuilds loads each kept build of the probe beside this one, before it and after it.
func TestTwoBuilds(t *testing.T) {
	if !full {
		t.Skip("not run: two builds of the probe in one JVM (make test-full)")
	}
	lib := probeLibrary(t)
	kept, err := filepath.Glob("testdata/probes/*.so.zst")
	if err != nil || len(kept) == 0 {
		t.Fatalf("no kept probes: %v", err)
	}
	for i, f := range kept {
		packed, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		d, err := zstd.NewReader(nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := d.DecodeAll(packed, nil)
		d.Close()
		if err != nil {
			t.Fatal(err)
		}
		old := filepath.Join(t.TempDir(), "libheapcam-old.so")
		if err := os.WriteFile(old, b, 0o700); err != nil {
			t.Fatal(err)
		}
		for k, pair := range [][2]string{{lib, old}, {old, lib}} {
			a := assault{major: []int{17, 25}[k], gc: collectors[(i+k)%3], lib: pair[0], probe: ",interval=0",
				opts: []string{"-agentpath:" + pair[1] + "=interval=0,dir=" + t.TempDir()}}
			e := a.run(t)
			t.Logf("%s %d: status %d, rings %v: %s", filepath.Base(f), k, e.code, e.states, strings.TrimSpace(e.errs))
			if e.killed || e.code != 0 || !strings.HasSuffix(e.out, "\ndone\n") {
				t.Errorf("%s %d: status %d\n%s\n%s", filepath.Base(f), k, e.code, tail(e.out), tail(e.errs))
			}
		}
	}
}

// TestFewProcesses gives a JVM just as many threads as it needs without the probe, and a few more (RLIMIT_NPROC, which
// does not bind root).
func TestFewProcesses(t *testing.T) {
	if !full {
		t.Skip("not run: limits on threads (make test-full)")
	}
	needRoot(t, "limits on threads of another user", "setpriv", "prlimit")
	lib := probeLibrary(t)
	open(t, filepath.Dir(lib))
	open(t, classPath(t))
	const user = "61234" // nobody has it
	wrap := func(n int) []string {
		return []string{"setpriv", "--reuid", user, "--regid", user, "--clear-groups", "prlimit",
			"--nproc=" + strconv.Itoa(n)}
	}
	for i, gc := range collectors {
		major := []int{17, 25}[i%2]
		least := 0
		for n := 14; n < 80 && least == 0; n++ {
			// With too few threads a JVM ends, or waits for a thread of its collector for ever (Parallel of JDK 25).
			// How many it makes is a matter of time.
			enough := true
			for try := 0; try < 3 && enough; try++ {
				c := exec.Command("timeout", append([]string{"-s", "KILL", "15"}, wrap(n)...)...)
				c.Args = append(c.Args, filepath.Join(jdk(t, major), "bin", "java"), "-Xmx64m", "-Xmn2m",
					"-XX:+Use"+gc+"GC", "-cp", classPath(t), "Crowd", "3", "20000")
				out, err := c.CombinedOutput()
				enough = err == nil && strings.HasSuffix(string(out), "threads 3\ndone\n")
			}
			if enough {
				least = n
			}
		}
		for n := least + 1; n < least+4; n++ { // the probe has one thread
			dir, err := os.MkdirTemp("/dev/shm", "heapcam-test-")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			open(t, dir)
			a := assault{major: major, gc: gc, lib: lib, dir: dir, keep: true, wrap: wrap(n),
				main: []string{"Crowd", "3", "20000"}}
			e := a.run(t)
			t.Logf("%s/%d, %d threads (%d are enough): status %d, rings %v: %s %s", gc, major, n, least, e.code,
				e.states, strings.TrimSpace(e.out), strings.TrimSpace(e.errs))
			if e.killed || e.code != 0 {
				t.Errorf("%s/%d, %d threads: status %d\n%s\n%s", gc, major, n, e.code, tail(e.out), tail(e.errs))
			}
		}
	}
}

// open lets everybody write there.
func open(t *testing.T, dir string) {
	t.Helper()
	for d := dir; d != "/" && d != "/tmp" && d != "/dev/shm"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, f := range files {
		os.Chmod(f, 0o755)
	}
}

// TestTightGroup gives a JVM a memory group that it just fits into without the probe, and 8 to 64 MiB more.
func TestTightGroup(t *testing.T) {
	if !full {
		t.Skip("not run: memory limits of a control group (make test-full)")
	}
	group := "/sys/fs/cgroup/memory/heapcam-test"
	limit, procs := "memory.limit_in_bytes", "cgroup.procs"
	if _, err := os.Stat("/sys/fs/cgroup/memory"); err != nil {
		group, limit = "/sys/fs/cgroup/heapcam-test", "memory.max"
	}
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("not run: memory limits of a control group (%v)", err)
	}
	defer os.Remove(group)
	lib := probeLibrary(t)
	wrap := []string{"sh", "-c", "echo $$ > " + filepath.Join(group, procs) + ` && exec "$@"`, "sh"}
	set := func(mib int) {
		if err := os.WriteFile(filepath.Join(group, limit), []byte(fmt.Sprint(mib<<20)), 0o644); err != nil {
			t.Skipf("not run: memory limits of a control group (%v)", err)
		}
	}
	for i, gc := range collectors {
		major := []int{17, 25}[i%2]
		least := 0
		for n := 40; n < 256 && least == 0; n += 4 {
			set(n)
			c := exec.Command(wrap[0],
				append(wrap[1:], filepath.Join(jdk(t, major), "bin", "java"), "-Xmx64m", "-Xmn2m", "-XX:+Use"+gc+"GC",
					"-cp", classPath(t), "Crowd", "3", "20000")...)
			if out, err := c.CombinedOutput(); err == nil && strings.HasSuffix(string(out), "done\n") {
				least = n
			}
		}
		for _, more := range []int{0, 8, 16, 32, 64} {
			set(least + more)
			a := assault{major: major, gc: gc, lib: lib, keep: true, wrap: wrap, main: []string{"Crowd", "3", "20000"}}
			e := a.run(t)
			t.Logf("%s/%d, %d MiB (%d are enough): status %d, rings %v: %s", gc, major, least+more, least, e.code,
				e.states, strings.TrimSpace(e.errs))
			if e.code != 0 && more >= 32 || strings.Contains(e.errs, "Problematic frame") {
				t.Errorf("%s/%d, %d MiB: status %d\n%s\n%s", gc, major, least+more, e.code, tail(e.out), tail(e.errs))
			}
		}
	}
}
