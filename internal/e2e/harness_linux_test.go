package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	full    = os.Getenv("HEAPCAM_FULL") != ""
	scratch string // removed at the end
	tool    string // the heapcam binary
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "heapcam-e2e."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	if tool = os.Getenv("HEAPCAM_BIN"); tool == "" {
		tool = filepath.Join(scratch, "heapcam")
		if out, err := exec.Command("go", "build", "-o", tool, "../../cmd/heapcam").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build of heapcam: %v\n%s", err, out)
			return 1
		}
	}
	os.Setenv("XDG_CACHE_HOME", filepath.Join(scratch, "cache")) // where heapcam keeps reports
	return m.Run()
}

// ---- running a program under heapcam ----

// program is one Java program under `heapcam run`.
type program struct {
	major   int
	gc      string   // Serial, Parallel, G1; "" when opts choose
	heap    string   // -Xmx, default 96m
	opts    []string // of the JVM
	main    string
	args    []string
	flags   []string // of heapcam run
	probe   string   // more options for the probe
	env     []string
	limit   string // --max-trace-size, default 4MiB
	timeout time.Duration
	classes string   // class path, default the programs of java/
	bare    bool     // opts have the class path
	wrap    []string // a program that runs heapcam
	stdin   *os.File // of one that runs without heapcam
}

// running is a program that has been started.
type running struct {
	*program
	cmd            *exec.Cmd
	out            string // --out
	gclog          string
	stdout, stderr *buffer
	stdinW         *os.File
}

// buffer is a bytes.Buffer that a test may read while a process writes.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (p *program) start(t *testing.T) *running {
	t.Helper()
	home := jdk(t, p.major)
	dir := t.TempDir()
	if keep := os.Getenv("HEAPCAM_KEEP"); keep != "" { // a folder for what failing tests recorded
		t.Cleanup(func() {
			if t.Failed() {
				t.Log(os.CopyFS(filepath.Join(keep, strings.ReplaceAll(t.Name(), "/", "_")), os.DirFS(dir)))
			}
		})
	}
	r := &running{program: p, out: filepath.Join(dir, "rec"), gclog: filepath.Join(dir, "gc.log"), stdout: &buffer{},
		stderr: &buffer{}}
	limit, heap := p.limit, p.heap
	if limit == "" {
		limit = "4MiB"
	}
	if heap == "" {
		heap = "96m"
	}
	args := append([]string{"run", "--out", r.out, "--max-trace-size", limit}, p.flags...)
	if !slices.Contains(p.flags, "--overhead-cpu") { // or what is recorded depends on how busy the machine is
		args = append(args, "--overhead-cpu", "0")
	}
	args = append(args, "--", filepath.Join(home, "bin", "java"), "-Xmx"+heap,
		"-Xlog:gc,safepoint:file="+r.gclog+":uptime")
	if p.gc != "" {
		args = append(args, "-XX:+Use"+p.gc+"GC")
	}
	args = append(args, p.opts...)
	if !p.bare {
		args = append(args, "-cp", classPath(t))
	}
	args = append(append(args, p.main), p.args...)
	line := append(append(slices.Clone(p.wrap), tool), args...)
	r.cmd = exec.Command(line[0], line[1:]...)
	r.cmd.Env = append(append(os.Environ(), "HEAPCAM_PROBE_OPTIONS="+p.probe), p.env...)
	r.cmd.Stdout, r.cmd.Stderr = r.stdout, r.stderr
	in, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.cmd.Stdin, r.stdinW = in, w
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	timeout := p.timeout
	if timeout == 0 {
		timeout = 180 * time.Second
	}
	watchdog := time.AfterFunc(timeout, func() { r.cmd.Process.Kill() })
	t.Cleanup(func() {
		watchdog.Stop()
		w.Close()
		if r.cmd.ProcessState == nil {
			if pid := r.pid(); pid > 0 {
				if p, err := os.FindProcess(pid); err == nil {
					p.Kill()
				}
			}
			r.cmd.Process.Kill()
			r.cmd.Wait()
		}
		if t.Failed() {
			t.Logf("java %v %s %v %s %v\nstdout:\n%s\nstderr:\n%s", p.major, p.gc, p.opts, p.main, p.args,
				tail(r.stdout.String()), tail(r.stderr.String()))
		}
	})
	return r
}

func tail(s string) string {
	if len(s) > 3000 {
		return "…" + s[len(s)-3000:]
	}
	return s
}

// pid of the JVM, which programs that are killed print first; 0 before that.
func (r *running) pid() int {
	if m := regexp.MustCompile(`(?m)^pid (\d+)$`).FindStringSubmatch(r.stdout.String()); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 0
}

func (r *running) pidText() string { return strconv.Itoa(r.pid()) }

// await waits until f holds, a minute at most.
func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	awaitWithin(t, time.Minute, what, f)
}

func awaitWithin(t *testing.T, most time.Duration, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(most); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s", what, most)
		}
	}
}

// wait gives heapcam's exit status.
func (r *running) wait(t *testing.T) int {
	t.Helper()
	err := r.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return r.cmd.ProcessState.ExitCode()
}

// finish waits for a program that must end well: status 0 and "done" as its last line.
func (r *running) finish(t *testing.T) {
	t.Helper()
	if code := r.wait(t); code != 0 {
		t.Fatalf("status %d", code)
	}
	if !strings.HasSuffix(strings.TrimSpace(r.stdout.String()), "done") {
		t.Fatal("the program did not say that it is done")
	}
}

// end makes the file that a program waits for, and waits for it as finish does.
func (r *running) end(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.finish(t)
}

// pauses is what the JVM itself logged.
type pauses struct {
	lines []string // one a collection, without the word Pause
	// stops in which there was at least one collection; some share theirs, nested (reported once) or queued (reported
	// one by one)
	stops int
	idle  int // stops that were made for a collection and had none: observers see them all the same
}

func (r *running) pauses(t *testing.T) (p pauses) {
	t.Helper()
	b, err := os.ReadFile(r.gclog)
	if err != nil {
		t.Fatal(err)
	}
	open := false
	for _, l := range strings.Split(string(b), "\n") {
		if _, line, ok := strings.Cut(l, " Pause "); ok && strings.HasSuffix(l, "ms") {
			p.lines, open = append(p.lines, line), true
		} else if old := strings.Contains(l, "threads were stopped"); old || strings.Contains(l, "Safepoint \"") {
			if open {
				p.stops++
			} else if old || strings.Contains(l, "Collect") || strings.Contains(l, "GC") { // 11 does not say for what
				p.idle++
			}
			open = false
		}
	}
	if open { // killed in the stop
		p.stops++
	}
	return p
}

// stops is how many collections the JVM has logged by now; 0 also before it has a log.
func (r *running) stops() int {
	b, err := os.ReadFile(r.gclog)
	if err != nil {
		return 0
	}
	return len(pauseLine.FindAllIndex(b, -1))
}

var pauseLine = regexp.MustCompile(` Pause .*ms\n`)

var recordedLine = regexp.MustCompile(
	`(?m)^heapcam: recorded (.+) \(pid (\d+)\).*? ([\d,]+) collections?, .*? in (\d+) files?: (\S+)` +
		`( \((\d+) collections? lost\))?$`)

// recorded is what `run` says at its end of one JVM.
type recorded struct {
	name        string
	collections int
	files       int
	dir         string
	lost        int
}

// recorded finds the line on the only JVM.
func (r *running) recorded(t *testing.T) recorded {
	t.Helper()
	all := recordedLine.FindAllStringSubmatch(r.stderr.String(), -1)
	if len(all) != 1 {
		t.Fatalf("heapcam tells of %d recordings, want 1", len(all))
	}
	m := all[0]
	n, _ := strconv.Atoi(strings.ReplaceAll(m[3], ",", ""))
	files, _ := strconv.Atoi(m[4])
	lost, _ := strconv.Atoi(m[7])
	return recorded{m[1], n, files, m[5], lost}
}

// probeLines are the lines that the probe wrote about this JVM, without the runner's own.
func (r *running) probeLines() (out []string) {
	for _, l := range strings.Split(r.stderr.String(), "\n") {
		if strings.HasPrefix(l, "heapcam: ") && !strings.HasPrefix(l, "heapcam: recorded ") &&
			!strings.HasPrefix(l, "heapcam: no JVM was recorded") {
			out = append(out, l)
		}
	}
	return out
}

// canRead says that the binary has the verbs that read recordings.
var canRead = sync.OnceValue(func() bool {
	out, _ := exec.Command(tool, "help", "verify").CombinedOutput()
	return bytes.Contains(out, []byte("--json"))
})

func needReader(t *testing.T) {
	t.Helper()
	if !canRead() {
		t.Skip("not run: replay of what was recorded (this binary has no verify, report and histogram yet)")
	}
}

// ---- verbs that read ----

// heapcam runs a verb to its end.
func heapcam(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	c := exec.Command(tool, args...)
	c.Stdout, c.Stderr = &o, &e
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return o.String(), e.String(), c.ProcessState.ExitCode()
}

// heapcamJSON runs a verb with --json; it must succeed.
func heapcamJSON(t *testing.T, to any, args ...string) {
	t.Helper()
	needReader(t)
	out, errs, code := heapcam(t, append(args, "--json")...)
	if code != 0 {
		t.Fatalf("heapcam %v: status %d\n%s%s", args, code, out, errs)
	}
	if err := json.Unmarshal([]byte(out), to); err != nil {
		t.Fatalf("heapcam %v: %v\n%s", args, err, out)
	}
}

type verifyReply struct {
	Schema     string `json:"schema"`
	SyncPoints int    `json:"sync_points"`
	Mismatches int    `json:"mismatches"`
}

// verify replays a recording and demands that it agrees with each of its sync points, of which there must be at least
// least.
func verify(t *testing.T, file string, least int) verifyReply {
	t.Helper()
	needReader(t)
	out, errs, code := heapcam(t, "verify", file, "--json")
	var v verifyReply
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("verify: %v: status %d\n%s%s", err, code, tail(out), tail(errs))
	}
	if v.Schema != "heapcam.verify/1" {
		t.Errorf("verify: schema %q", v.Schema)
	}
	if v.Mismatches != 0 || code != 0 {
		t.Fatalf("verify: %d mismatches, status %d\n%s%s", v.Mismatches, code, tail(out), tail(errs))
	}
	if v.SyncPoints < least {
		t.Errorf("verify: %d sync points, want at least %d", v.SyncPoints, least)
	}
	return v
}

type frame struct {
	Class  string `json:"class"`
	Method string `json:"method"`
	File   string `json:"file"`
	Line   *int   `json:"line"`
	Native bool   `json:"native"`
}

type reportReply struct {
	Collections []struct {
		GC     uint64 `json:"gc"`
		Kind   string `json:"kind"`
		Cause  string `json:"cause"`
		Synced bool   `json:"sync_point"`
	} `json:"collections"`
	Suspects []struct {
		Class string  `json:"class"`
		Site  []frame `json:"site"`
	} `json:"verdicts"`
	LostSamples uint64 `json:"lost_samples"`
}

type histogramReply struct {
	GC      uint64 `json:"gc"`
	Classes []struct {
		Class   string `json:"class"`
		VMClass string `json:"vm_class"`
		Objects uint64 `json:"objects"`
		Bytes   uint64 `json:"bytes"`
	} `json:"classes"`
}
