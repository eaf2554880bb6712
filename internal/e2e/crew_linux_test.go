package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

var walksLine = regexp.MustCompile(`walks: (\d+) ranges by helper threads, (\d+) by the VM thread, (\d+) differ`)

// TestHelperThreads: threads of the probe list regions of G1 beside the VM thread. What they write is what it would
// have written, and one that faults, is late, hangs or dies costs only time.
func TestHelperThreads(t *testing.T) {
	t.Parallel()
	if runtime.NumCPU() < 2 {
		t.Skip("not run: helper threads (one CPU)")
	}
	for _, c := range []struct {
		name, crew string
		helps      string // whether ranges that a thread has listed are used; "": if the VM thread is late too
	}{
		{"compare", "2", "yes"}, {"use", "8", "yes"}, {"late", "4", ""}, {"straggle", "5", ""},
		{"fault", "3", "no"}, {"hang", "6", "no"}, {"die", "7", "no"},
	} {
		t.Run(c.name, func(t *testing.T) {
			one := func(t *testing.T, major int, gc string) {
				p := crewProgram(major, gc, "crew="+c.crew)
				r := p.start(t)
				r.finish(t)
				rec := checkCount(t, r)
				verify(t, rec.dir, 1)
				m := walksLine.FindStringSubmatch(r.stderr.String())
				if m == nil {
					t.Fatalf("no line about helper threads: %s", r.stderr.String())
				}
				if m[3] != "0" || (c.helps == "yes") != (m[1] != "0") && c.helps != "" || m[2] == "0" {
					t.Errorf("%s", m[0])
				}
			}
			if c.helps == "yes" {
				eachPair(t, []int{17, 25}, []string{"G1"}, one)
			} else {
				somePair(t, "helper threads "+c.name, []int{17, 25}, []string{"G1"}, one)
			}
		})
	}
	t.Run("checked", func(t *testing.T) {
		p := crewProgram(25, "G1", "crew=2")
		p.opts = append(p.opts, "-Xcheck:jni")
		r := p.start(t)
		r.finish(t)
		silent(t, r)
		if walksLine.MatchString(r.stderr.String()) {
			t.Error("helper threads with -Xcheck:jni")
		}
	})
}

// TestHelperThreadsEden is the same for eden at depth full, which Serial and Parallel have in one piece: it is cut
// where sampled objects stand. Where one does not stand there ("wrong"), that pause is lost and eden is not cut again.
func TestHelperThreadsEden(t *testing.T) {
	t.Parallel()
	if runtime.NumCPU() < 2 {
		t.Skip("not run: helper threads (one CPU)")
	}
	for _, c := range []struct {
		name, crew string
		helps      string
	}{
		{"compare", "2", "yes"}, {"use", "8", "yes"}, {"late", "4", ""}, {"fault", "3", "no"}, {"hang", "6", "no"},
		{"die", "7", "no"}, {"wrong", "10", ""}, {"some fault", "11", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			gcs := []string{"Parallel", "G1", "Serial"}
			if c.name == "wrong" {
				gcs = []string{"Parallel", "Serial"} // regions need no objects to be found
			}
			one := func(t *testing.T, major int, gc string) {
				p := crewProgram(major, gc, "oracle=1,crew="+c.crew)
				p.main, p.args = "Swirl", []string{"600", "300", "0"}
				p.heap, p.limit = "200m", "64MiB"
				p.opts = append(p.opts, "-Xmn40m")
				p.flags = append(p.flags, "--depth", "full", "--sampling", "64KiB")
				helped(t, &p, c.helps, c.name == "wrong")
			}
			if c.name == "compare" {
				eachPair(t, []int{17, 25}, gcs, one)
			} else {
				somePair(t, "helper threads in eden "+c.name, []int{17, 25}, gcs, one)
			}
		})
	}
}

// TestHelperThreadsSpaces is the same for survivor space and for listings of Serial and Parallel, which are cut at
// objects that were sampled before.
func TestHelperThreadsSpaces(t *testing.T) {
	t.Parallel()
	if runtime.NumCPU() < 2 {
		t.Skip("not run: helper threads (one CPU)")
	}
	for _, c := range []struct{ name, crew, helps string }{
		{"compare", "2", "yes"}, {"use", "8", "yes"}, {"wrong", "10", ""}, {"some fault", "11", ""},
		{"hang", "6", "no"},
	} {
		t.Run(c.name, func(t *testing.T) {
			one := func(t *testing.T, major int, gc string) {
				p := crewProgram(major, gc, "oracle=1,crew="+c.crew)
				p.main, p.args = "Swirl", []string{"600", "300", "100"}
				p.heap, p.limit = "200m", "64MiB"
				p.opts = append(p.opts, "-Xmn40m")
				p.flags = append(p.flags, "--sampling", "64KiB")
				helped(t, &p, c.helps, c.name == "wrong")
			}
			if c.name == "compare" {
				eachPair(t, []int{17, 25}, []string{"Parallel", "Serial"}, one)
			} else {
				somePair(t, "helper threads in spaces "+c.name, []int{17, 25}, []string{"Parallel", "Serial"}, one)
			}
		})
	}
}

// TestHelperThreadsSlices is the same for listings that are spread over collections, with losses.
func TestHelperThreadsSlices(t *testing.T) {
	t.Parallel()
	needReader(t)
	if runtime.NumCPU() < 2 {
		t.Skip("not run: helper threads (one CPU)")
	}
	for name, crew := range map[string]string{"compare": "2", "use": "8", "late": "4,lose=12"} {
		t.Run(name, func(t *testing.T) {
			somePair(t, "helper threads in slices "+name, []int{17, 25}, []string{"G1"},
				func(t *testing.T, major int, gc string) {
					p := program{major: major, gc: gc, heap: "200m", main: "Swirl", limit: "16MiB",
						opts: []string{"-Xmn20m", "-XX:InitiatingHeapOccupancyPercent=20"},
						args: []string{"1500", "300", "0"}, probe: "slice=200,crew=" + crew}
					// A slice has few ranges, and where others run a helper may come too late for all of them.
					for try := range 5 {
						r := p.start(t)
						r.finish(t)
						slicesAgree(t, r)
						m := walksLine.FindStringSubmatch(r.stderr.String())
						switch {
						case m == nil || m[3] != "0":
							t.Fatalf("%q: %s", m, r.stderr.String())
						case m[1] != "0" || name == "late":
							return
						}
						t.Logf("try %d: %s", try, m[0])
					}
					t.Error("no helper thread has walked a range")
				})
		})
	}
}

// TestHelperThreadsLinearSlices is the same for Serial and Parallel, whose slices are cut at sampled objects. A slice
// stays one range.
func TestHelperThreadsLinearSlices(t *testing.T) {
	t.Parallel()
	needReader(t)
	if runtime.NumCPU() < 2 {
		t.Skip("not run: helper threads (one CPU)")
	}
	for _, c := range []struct{ name, crew, helps string }{
		{"compare", "2", "yes"}, {"use", "8", "yes"}, {"late", "4,lose=12", ""}, {"straggle", "5", ""},
		{"fault", "3", "no"}, {"hang", "6", "no"}, {"die", "7", "no"}, {"wrong", "12", ""}, {"some fault", "11", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			gcs := []string{"Parallel", "Serial"}
			one := func(t *testing.T, major int, gc string) {
				p := crewProgram(major, gc, "oracle=1,slice=1000,crew="+c.crew)
				p.main, p.args = "Swirl", []string{"1500", "1000", "0"}
				p.heap, p.limit = "400m", "8MiB" // several files, so that every pair has more than ten slices
				p.opts = append(p.opts, "-Xmn20m")
				p.flags = append(p.flags, "--sampling", "64KiB")
				r := helped(t, &p, c.helps, c.name == "wrong")
				dump, _, _ := heapcam(t, "dump", "--brief", r.recorded(t).dir)
				if n := strings.Count(dump, "slice gc="); n < 2 {
					t.Errorf("%d slices", n)
				}
			}
			if c.helps == "yes" {
				eachPair(t, []int{17, 25}, gcs, one)
			} else {
				somePair(t, "helper threads in linear slices "+c.name, []int{17, 25}, gcs, one)
			}
		})
	}
}

// helped records p. Helper threads wrote what the VM thread would have written; one pause is lost if a cut is wrong.
// helps: whether ranges that a thread has walked are used; "": if the VM thread is late too.
func helped(t *testing.T, p *program, helps string, wrong bool) *running {
	t.Helper()
	r := p.start(t)
	r.finish(t)
	verify(t, r.recorded(t).dir, 1)
	lost := strings.Count(r.stderr.String(), "could not be read")
	if lost > 0 != wrong || lost > 1 {
		t.Errorf("%d collections could not be read: %s", lost, r.stderr.String())
	}
	m := walksLine.FindStringSubmatch(r.stderr.String())
	if m == nil {
		t.Fatalf("no line about helper threads: %s", r.stderr.String())
	}
	if m[3] != "0" || (helps == "yes") != (m[1] != "0") && helps != "" || m[2] == "0" {
		t.Errorf("%s", m[0])
	}
	return r
}

func crewProgram(major int, gc, probe string) program {
	p := program{major: major, gc: gc, heap: "64m", main: "Collect", args: []string{"30"}, probe: probe,
		flags: []string{"--overhead-cpu", "0", "--max-sync-pause", "10s"}}
	if major == 25 {
		p.opts = []string{"-XX:+UseCompactObjectHeaders"}
	}
	return p
}

// walkers counts the helper threads of a process.
func walkers(pid int) int {
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/comm")
	n := 0
	for _, f := range tasks {
		if b, _ := os.ReadFile(f); strings.HasPrefix(string(b), "heapcam walk") {
			n++
		}
	}
	return n
}

// TestHelperThreadsEnd: detaching ends them, and the next recording has its own.
func TestHelperThreadsEnd(t *testing.T) {
	t.Parallel()
	needReader(t)
	if runtime.NumCPU() < 2 {
		t.Skip("not run: helper threads (one CPU)")
	}
	d := newDaemon(t, "--max-trace-size", "1MiB", "--emergency", "off")
	d.start(t)
	file := filepath.Join(t.TempDir(), "end")
	p := program{major: 17, gc: "G1", heap: "64m", main: "Until", args: []string{file, "2000", "5"}}
	r := p.plain(t)
	await(t, "pid", func() bool { return r.pid() > 0 })
	for i := range 3 {
		if errs, code := d.attach(t, r.pidText()); code != 0 {
			t.Fatalf("attach %d: status %d: %s", i, code, errs)
		}
		await(t, fmt.Sprintf("helper threads %d", i), func() bool { return walkers(r.pid()) > 0 })
		if _, errs, code := heapcam(t, "detach", r.pidText(), "--socket", d.sock); code != 0 {
			t.Fatalf("detach %d: status %d: %s", i, code, errs)
		}
		await(t, fmt.Sprintf("their end %d", i), func() bool { return walkers(r.pid()) == 0 })
	}
	r.end(t, file)
	d.stop(t)
}
