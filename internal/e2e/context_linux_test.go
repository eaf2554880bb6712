package e2e

import (
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

//go:embed native/context.c
var contextSource string

// contextJVM is a JVM that publishes a process context in one of the ways of native/context.c.
type contextJVM struct {
	*running
	d   *daemon
	end string // the file that ends it
}

func publishes(t *testing.T, d *daemon, major int, gc, how string, opts ...string) *contextJVM {
	t.Helper()
	end := filepath.Join(t.TempDir(), "end")
	p := program{major: major, gc: gc, heap: "64m", main: "Until", args: []string{end, "2000", "5"}, opts: opts,
		env: []string{"CONTEXT=" + how, "OTEL_SERVICE_NAME=from-environment", "OTEL_RESOURCE_ATTRIBUTES=" +
			"service.namespace=shop,service.version=0",
			"LD_PRELOAD=" + compiled(t, "libcontext.so", contextSource, "-O1", "-pthread")}}
	j := &contextJVM{p.plain(t), d, end}
	await(t, "pid", func() bool { return j.pid() > 0 })
	return j
}

// resource is what status says of the JVM.
func (j *contextJVM) resource(t *testing.T) trace.Resource {
	t.Helper()
	out, errs, code := heapcam(t, "status", "--json", "--socket", j.d.sock)
	if code != 0 {
		t.Fatalf("status %d: %s", code, errs)
	}
	var st struct {
		JVMs []struct {
			PID      int            `json:"pid"`
			Resource trace.Resource `json:"resource"`
		} `json:"jvms"`
	}
	if err := json.Unmarshal([]byte(out), &st); err != nil {
		t.Fatal(err)
	}
	for _, s := range st.JVMs {
		if s.PID == j.pid() {
			return s.Resource
		}
	}
	return nil
}

// named waits until status has the version of the context, and compares the rest.
func (j *contextJVM) named(t *testing.T, version string) {
	t.Helper()
	var got trace.Resource
	await(t, "the attributes of the process context", func() bool {
		got = j.resource(t)
		return got[trace.AttrVersion] == version
	})
	for k, v := range map[string]string{trace.AttrService: "from-context", trace.AttrNamespace: "shop",
		trace.AttrEnv: "prod_[2J", trace.AttrPID: strconv.Itoa(j.pid())} {
		if got[k] != v {
			t.Errorf("%s: %q, want %q", k, got[k], v)
		}
	}
}

// TestProcessContext: what an SDK publishes in memory comes before what the environment says. Status has it, also when
// it comes late or changes, and recording.json, the recording and an incident. Nothing else of it is in any file.
func TestProcessContext(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, "--max-trace-size", "4MiB")
	d.start(t)
	for i, how := range []string{"memfd", "behind", "late", "update"} {
		eachPair(t, []int{17, 25}, []string{[]string{"G1", "Serial", "Parallel", "G1"}[i]},
			func(t *testing.T, major int, gc string) {
				t.Run(how, func(t *testing.T) {
					j := publishes(t, d, major, gc, how, d.option(t))
					j.named(t, "1")
					if how == "update" {
						j.named(t, "2")
					}
					j.kept(t)
				})
			})
	}
}

// kept compares what is on the disk, detaches, and attaches again: the next recording has the names, too.
func (j *contextJVM) kept(t *testing.T) {
	t.Helper()
	want := j.resource(t)
	dirs, _ := filepath.Glob(filepath.Join(j.d.out, "Until-"+j.pidText()+"-*"))
	if len(dirs) != 1 {
		t.Fatalf("recordings: %v", dirs)
	}
	await(t, "recording.json", func() bool {
		return ringstore.ReadResource(ringstore.OS, dirs[0])[trace.AttrVersion] == want[trace.AttrVersion]
	})
	out, errs, code := heapcam(t, "report", dirs[0], "--json")
	if code != 0 || !strings.Contains(out, `"service.name": "from-context"`) {
		t.Errorf("report: status %d: %s%s", code, errs, tail(out))
	}
	out, errs, code = heapcam(t, "freeze", dirs[0], "--json")
	if code != 0 || !strings.Contains(out, "from-context") {
		t.Errorf("freeze: status %d: %s%s", code, errs, tail(out))
	}
	for _, dir := range []string{dirs[0], j.d.rings} {
		_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				if b, _ := os.ReadFile(path); strings.Contains(string(b), "s3cret") {
					t.Errorf("%s has what is no named attribute", path)
				}
			}
			return nil
		})
	}
	j.detach(t)
	if errs, code := j.d.attach(t, j.pidText()); code != 0 {
		t.Fatalf("attach: status %d: %s", code, errs)
	}
	j.named(t, want[trace.AttrVersion])
	j.running.end(t, j.end)
}

func (j *contextJVM) detach(t *testing.T) {
	t.Helper()
	if _, errs, code := heapcam(t, "detach", j.pidText(), "--socket", j.d.sock); code != 0 {
		t.Fatalf("detach: status %d: %s", code, errs)
	}
}

// TestHostileContext: whatever lies where a context should be, the JVM is recorded with the names of its environment,
// can be detached from, and ends.
func TestHostileContext(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, "--max-trace-size", "4MiB")
	d.start(t)
	for _, how := range []string{"signature", "version", "empty", "huge", "changing", "long", "file", "garbage", "none",
		"racing", "unmapped", "many", "fault"} {
		somePair(t, "process context "+how, []int{17, 25}, []string{"G1"}, func(t *testing.T, major int, gc string) {
			t.Parallel()
			j := publishes(t, d, major, gc, how, d.option(t), "-Xcheck:jni")
			if strings.Contains(j.stderr.String(), "no userfaultfd") {
				t.Skip("not run: a process context whose reader waits (there is no userfaultfd)")
			}
			await(t, "a recording", func() bool { return j.resource(t) != nil })
			time.Sleep(4 * time.Second) // the probe looks after one second and after three
			j.noReader(t, how)          // between looks there is none
			if r := j.resource(t); how != "racing" && how != "unmapped" && how != "many" &&
				(r[trace.AttrService] != "from-environment" || r[trace.AttrVersion] != "0") {
				t.Errorf("%v", r)
			}
			j.detach(t)
			const stays = "process context: reading it has not ended"
			if waits := strings.Contains(j.stderr.String(), stays); waits != (how == "fault") {
				t.Errorf("the reader waits: %v", waits)
			}
			j.noReader(t, how)
			if errs, code := d.attach(t, j.pidText()); code != 0 {
				t.Fatalf("attach: status %d: %s", code, errs)
			}
			silent(t, j.running)
			j.running.end(t, j.end)
		})
	}
}

// noReader: no thread reads process contexts, but one whose memory makes it wait.
func (j *contextJVM) noReader(t *testing.T, how string) {
	t.Helper()
	want := 0
	if how == "fault" {
		want = 1
	}
	if n := j.readers(); n != want {
		t.Errorf("%d readers instead of %d", n, want)
	}
}

// readers counts the threads that read process contexts.
func (j *contextJVM) readers() (n int) {
	tasks, _ := filepath.Glob("/proc/" + j.pidText() + "/task/*/comm")
	for _, f := range tasks {
		if b, _ := os.ReadFile(f); strings.HasPrefix(string(b), "heapcam names") {
			n++
		}
	}
	return n
}
