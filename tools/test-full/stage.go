package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stage is what runs as one command: the tests of a package, or a command that passes or fails as a whole.
type stage struct {
	name    string   // in results and on the page
	pkg     string   // of tests; "": command
	dir     string   // where it runs; "": here
	args    []string // of go test
	only    []string // the tests; nil: all
	env     []string
	command []string
	chosen  *regexp.Regexp // the names of tests that are to run now; nil: all
	alone   bool           // it has the machine for itself
}

const module = "github.com/heapcam/heapcam/"

// raced are the packages with several goroutines.
var raced = []string{
	"./agent/...", "./emergency", "./heap", "./ringstore", "./shmring", "./svc", "./syncpoint", "./web",
}

// stages gives all there is, in the order in which it is reported.
func stages() ([]stage, error) {
	full := []string{"HEAPCAM_FULL=1"}
	if bin, err := filepath.Abs("bin/heapcam"); err == nil {
		full = append(full, "HEAPCAM_BIN="+bin)
	}
	out := []stage{
		{name: "go vet", command: []string{"go", "vet", "./..."}},
		// Modules of their own: the types of Kubernetes, Apache Arrow with gRPC and Thrift, and DuckDB are for their
		// tests alone.
		{name: "packaging/kubernetes", pkg: "./...", dir: "packaging/kubernetes", env: full},
		{name: "agent/profiles/otlptest", pkg: "./...", dir: "agent/profiles/otlptest", env: full},
		{name: "analysis/export/arrowtest", pkg: "./...", dir: "analysis/export/arrowtest", env: full},
		{name: "tools/fleetsql", pkg: "./...", dir: "tools/fleetsql", env: full},
	}
	names, err := list("./...")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if name != "internal/e2e" {
			out = append(out, stage{name: name, pkg: "./" + name, env: full})
		}
	}
	e2e := stage{name: "internal/e2e", pkg: "./internal/e2e", args: []string{"-parallel", "3"}, env: full, alone: true}
	out = append(out, e2e)
	if jdk := newerJDK(); jdk != "" {
		e2e.name, e2e.env = "internal/e2e with JDK "+jdk[:strings.Index(jdk, "=")], append(slices.Clone(full),
			"HEAPCAM_JDKS="+jdk)
		e2e.only = []string{"TestHistogram", "TestOracleInside", "TestPairs"}
		out = append(out, e2e)
	}
	names, err = list(raced...)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		out = append(out, stage{name: name + " with the race detector", pkg: "./" + name, args: []string{"-race"},
			env: []string{"HEAPCAM_FULL="}, alone: true})
	}
	return append(out, stage{name: "fuzzing", command: []string{"tools/fuzz"}, env: []string{"HEAPCAM_FUZZ_FOR=20s"},
		alone: true}), nil
}

// list gives the packages with tests that patterns name.
func list(patterns ...string) (names []string, err error) {
	const format = "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"
	out, err := exec.Command("go", append([]string{"list", "-f", format}, patterns...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for _, name := range strings.Fields(string(out)) {
		names = append(names, strings.TrimPrefix(name, module))
	}
	return names, nil
}

var fullVersion = regexp.MustCompile(`(?m)^JAVA_RUNTIME_VERSION="[^"]*"|^JAVA_VERSION="[^"]*"`)

var javaVersion = regexp.MustCompile(`(?m)^JAVA_VERSION="([0-9]+)`)

// installedJDKs gives their versions.
func installedJDKs() (versions []string) {
	releases, _ := filepath.Glob("/usr/lib/jvm/*/release")
	for _, f := range releases {
		b, _ := os.ReadFile(f)
		versions = append(versions, fullVersion.FindString(string(b)))
	}
	slices.Sort(versions)
	return slices.Compact(versions)
}

// newerJDK gives another tested JDK than 17 and 25, the newest that is installed, as "MAJOR=HOME"; "": there is none.
func newerJDK() (jdk string) {
	newest := 0
	releases, _ := filepath.Glob("/usr/lib/jvm/*/release")
	for _, f := range releases {
		b, _ := os.ReadFile(f)
		m := javaVersion.FindSubmatch(b)
		if m == nil {
			continue
		}
		major, _ := strconv.Atoi(string(m[1]))
		if slices.Contains([]int{11, 21, 26, 27, 28}, major) && major > newest {
			newest, jdk = major, fmt.Sprintf("%d=%s", major, filepath.Dir(f))
		}
	}
	return jdk
}

// run runs what of the stage has not passed. Its error is that it could not run at all.
func (s *stage) run(ctx context.Context, r *results) error {
	if ctx.Err() != nil {
		return nil
	}
	if s.pkg == "" {
		return s.runCommand(ctx, r)
	}
	names, out, err := s.tests(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		r.put(s.name, whole, &outcome{Result: fail, Output: lastLines(out)})
		return nil
	}
	r.expect(s.name, names)
	left := r.left(s.name, names)
	if s.chosen != nil {
		left = slices.DeleteFunc(left, func(name string) bool { return !s.chosen.MatchString(name) })
	}
	if len(left) == 0 { // of an earlier run
		r.done(s.name)
		return nil
	}
	var errs []error
	for _, names := range r.batches(s.name, left) {
		errs = append(errs, s.runTests(ctx, r, names))
	}
	return errors.Join(errs...)
}

// runTests runs the named tests of the stage.
func (s *stage) runTests(ctx context.Context, r *results, names []string) error {
	if ctx.Err() != nil {
		return nil
	}
	args := append([]string{"test", "-json", "-count=1", "-timeout", "3h"}, s.args...)
	args = append(args, "-run", "^("+strings.Join(names, "|")+")$", s.pkg)
	c := s.cmd(ctx, "go", args...)
	stdout, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	var stderr strings.Builder
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		return err
	}
	w := watch{stage: s.name, r: r, running: map[string]*outcome{}}
	w.follow(ctx, stdout)
	err = c.Wait()
	if ctx.Err() == nil {
		w.end(err, stderr.String())
	}
	return nil
}

// whole is the name of what no test stands for.
const whole = "(as a whole)"

func (s *stage) runCommand(ctx context.Context, r *results) error {
	r.expect(s.name, []string{whole})
	if len(r.left(s.name, []string{whole})) == 0 {
		r.done(s.name)
		return nil
	}
	begun := time.Now()
	out, err := s.cmd(ctx, s.command[0], s.command[1:]...).CombinedOutput()
	if ctx.Err() != nil {
		return nil
	}
	o := &outcome{Result: pass, Seconds: time.Since(begun).Seconds()}
	if err != nil {
		o.Result, o.Output = fail, lastLines(string(out))
	}
	r.put(s.name, whole, o)
	r.done(s.name)
	return nil
}

// cmd makes a command that ends with all that it has started.
func (s *stage) cmd(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = s.dir, append(os.Environ(), s.env...)
	ownGroup(c)
	c.WaitDelay = 10 * time.Second
	return c
}

var testName = regexp.MustCompile(`^(?:Test|Fuzz|Example)\w*$`)

// tests gives the names of the stage's tests. It compiles them.
func (s *stage) tests(ctx context.Context) (names []string, out string, err error) {
	if s.only != nil {
		return s.only, "", nil
	}
	args := append(append([]string{"test"}, s.args...), "-list", ".", s.pkg)
	b, err := s.cmd(ctx, "go", args...).CombinedOutput()
	for _, l := range strings.Split(string(b), "\n") {
		if testName.MatchString(l) {
			names = append(names, l)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), string(b), err
}

// event is a line of go test -json.
type event struct {
	Action, Test, Output string
	Elapsed              float64
}

// watch takes note of each test as it ends, so that what is stopped later has not run for nothing.
type watch struct {
	stage   string
	r       *results
	running map[string]*outcome // tests without what is below them
	failed  bool
	loose   []string // output that is no test's
}

func (w *watch) follow(ctx context.Context, in io.Reader) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if len(line) > 0 && json.Unmarshal(line, &e) == nil && ctx.Err() == nil {
			w.event(&e)
		}
		if err != nil {
			return
		}
	}
}

func (w *watch) event(e *event) {
	top, _, below := strings.Cut(e.Test, "/")
	o := w.running[top]
	if o == nil {
		o = &outcome{Leaves: map[string]float64{}}
		w.running[top] = o
	}
	switch e.Action {
	case "output":
		o.said(e.Output)
	case pass, fail, skip:
		if e.Test == "" {
			w.loose = o.Output
			return
		}
		o.leaf(e.Test, e.Elapsed)
		if below {
			return
		}
		o.Result, o.Seconds = e.Action, e.Elapsed
		if o.Result != fail {
			o.Output = nil
		}
		w.failed = w.failed || o.Result == fail
		delete(w.running, top)
		w.r.put(w.stage, top, o)
	}
}

// end says that the command has ended. What it left running has failed.
func (w *watch) end(err error, stderr string) {
	for name, o := range w.running {
		if name != "" {
			o.Result, w.failed = fail, true
			w.r.put(w.stage, name, o)
		}
	}
	if err != nil && !w.failed {
		w.r.put(w.stage, whole, &outcome{Result: fail,
			Output: append(w.loose, lastLines(cmp.Or(stderr, err.Error()))...)})
	}
	w.r.done(w.stage)
}
