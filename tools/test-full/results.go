package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// resultsFile is committed, so that a later run, on another machine too, leaves out what has not changed since.
const resultsFile = "docs/benchmarks/test-full.json"

// Results of a test, as go test -json calls them.
const pass, fail, skip = "pass", "fail", "skip"

// outcome is how a test ended, without what is below it.
type outcome struct {
	Result  string             `json:"result"`
	Seconds float64            `json:"seconds"`
	Runs    int                `json:"runs"`              // of these sources: more than one if it failed before
	Commit  string             `json:"commit,omitempty"`  // that it ran at
	Date    string             `json:"date,omitempty"`    // when
	Output  []string           `json:"output,omitempty"`  // of a test that failed
	NotRun  []string           `json:"not_run,omitempty"` // what it says that it left out, and why
	Leaves  map[string]float64 `json:"leaves,omitempty"`  // seconds of its slow parts
}

const (
	mostLines = 200 // of the output of a test
	slowLeaf  = 1.0 // seconds
)

var notRun = regexp.MustCompile(`not run: .*`)

func (o *outcome) said(line string) {
	line = strings.TrimSuffix(line, "\n")
	if m := notRun.FindString(line); m != "" && !slices.Contains(o.NotRun, m) {
		o.NotRun = append(o.NotRun, m)
	}
	if len(o.Output) < mostLines && !strings.HasPrefix(strings.TrimSpace(line), "=== ") {
		o.Output = append(o.Output, line)
	}
}

// leaf notes how long a part took. What it is made of came before it, and a whole says nothing where its parts run
// side by side.
func (o *outcome) leaf(name string, seconds float64) {
	for part := range o.Leaves {
		if strings.HasPrefix(part, name+"/") {
			return
		}
	}
	if seconds >= slowLeaf {
		o.Leaves[name] = seconds
	}
}

func lastLines(s string) []string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[max(0, len(lines)-mostLines):]
}

// stageResults are those of a stage.
type stageResults struct {
	Key   string              `json:"key"` // of what they depend on
	Date  string              `json:"date"`
	Names []string            `json:"names"` // all of its tests
	Tests map[string]*outcome `json:"tests"`
	// Earlier are the newest passes of tests that have not run since something that they depend on has changed.
	Earlier map[string]*outcome `json:"earlier,omitempty"`
}

// change says that what the stage depends on has another key now.
func (s *stageResults) change(key string) {
	earlier := map[string]*outcome{}
	for _, from := range []map[string]*outcome{s.Earlier, s.Tests} {
		for name, o := range from {
			if o != nil && o.Result == pass {
				earlier[name] = o
			}
		}
	}
	s.Key, s.Tests, s.Earlier = key, map[string]*outcome{}, earlier
}

// results are what is known of the stages. They may be used by several goroutines.
type results struct {
	Commit string                   `json:"commit"` // of the newest
	Stages map[string]*stageResults `json:"stages"`

	keys map[string]string // of the stages as they are now

	mu   sync.Mutex
	file string // "": they are not kept

	quiet bool // a test's: nothing is printed while tests run
}

// load gives the results of earlier runs. Where a stage's key is not the same any more, its tests are to run again.
func load(commit string, keys map[string]string, keep bool) *results {
	r := &results{}
	if b, err := os.ReadFile(resultsFile); !keep || err != nil || json.Unmarshal(b, r) != nil || r.Stages == nil {
		r.Stages = map[string]*stageResults{}
	}
	for name, s := range r.Stages {
		switch key, there := keys[name]; {
		case s == nil || s.Tests == nil || !there:
			delete(r.Stages, name)
		case s.Key != key:
			s.change(key)
		}
	}
	r.Commit, r.keys, r.file = commit, keys, resultsFile
	return r
}

func (r *results) of(stage string) *stageResults {
	s := r.Stages[stage]
	if s == nil {
		s = &stageResults{Key: r.keys[stage], Tests: map[string]*outcome{}}
		r.Stages[stage] = s
	}
	return s
}

// expect notes which tests a stage has.
func (r *results) expect(stage string, names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(stage).Names = names
}

// left gives those of names that have not passed. One that was skipped runs again: another machine may have what it
// needs.
func (r *results) left(stage string, names []string) (left []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range names {
		if o := r.of(stage).Tests[n]; o == nil || o.Result != pass {
			left = append(left, n)
		}
	}
	return left
}

// batches divides tests by what is known of them: those that never passed come first, then those whose last pass is
// the oldest. So several runs that are each stopped after some time get to all of them.
func (r *results) batches(stage string, left []string) (out [][]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	earlier := r.of(stage).Earlier
	date := func(name string) string {
		if o := earlier[name]; o != nil {
			return cmp.Or(o.Date, "0") + o.Commit
		}
		return ""
	}
	slices.SortStableFunc(left, func(a, b string) int { return cmp.Compare(date(a), date(b)) })
	for i, n := range left {
		if i == 0 || date(n) != date(left[i-1]) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], n)
	}
	return out
}

// put takes note of how a test ended, and keeps it.
func (r *results) put(stage, name string, o *outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.of(stage)
	o.Runs = 1
	if before := s.Tests[name]; before != nil && before.Result == fail {
		o.Runs += before.Runs
	}
	o.Commit, o.Date = r.Commit, time.Now().UTC().Format(time.DateOnly)
	s.Tests[name], s.Date = o, o.Date
	if o.Result != skip {
		delete(s.Earlier, name)
	}
	if name != whole {
		delete(s.Tests, whole) // the package can be built
	}
	if o.Result == fail && !r.quiet {
		fmt.Printf("--- FAIL: %s (%s)\n%s\n", name, stage, strings.Join(o.Output, "\n"))
	}
	if err := r.save(); err != nil {
		fmt.Fprintln(os.Stderr, "test-full: keep the results:", err)
		r.file = ""
	}
}

func (r *results) save() error {
	if r.file == "" {
		return nil
	}
	b, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(r.file), 0o755)
	}
	if err == nil {
		err = os.WriteFile(r.file+".part", b, 0o644)
	}
	if err == nil {
		err = os.Rename(r.file+".part", r.file)
	}
	return err
}

// done says on the standard output that a stage has ended.
func (r *results) done(stage string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.of(stage).count()
	if r.quiet {
		return
	}
	word := "ok  "
	if c.failed > 0 {
		word = "FAIL"
	}
	fmt.Printf("%s\t%s\t%.1fs\t%d passed, %d failed, %d skipped\n", word, stage, c.seconds, c.passed, c.failed,
		c.skipped)
}

// counts are how many tests of a stage ended how; left have not run, repeated passed after they had failed, earlier
// passed before something that they depend on has changed.
type counts struct {
	passed, failed, skipped, left, repeated, earlier int
	seconds                                          float64
}

func (s *stageResults) count() (c counts) {
	if s == nil {
		return c
	}
	for _, o := range s.Tests {
		c.seconds += o.Seconds
		switch o.Result {
		case pass:
			c.passed++
			if o.Runs > 1 {
				c.repeated++
			}
		case fail:
			c.failed++
		default:
			c.skipped++
		}
	}
	for _, n := range s.Names {
		switch {
		case s.Tests[n] != nil:
		case s.Earlier[n] != nil:
			c.earlier++
		default:
			c.left++
		}
	}
	return c
}

// reasons gives what tests of stages left out, and why.
func (r *results) reasons(stages []stage) []string {
	all := map[string]bool{}
	for _, s := range stages {
		if x := r.Stages[s.name]; x != nil {
			for _, o := range x.Tests {
				for _, why := range o.NotRun {
					all[why] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// slowest gives the n slowest parts of tests, with their seconds.
func (r *results) slowest(stages []stage, n int) (out []string) {
	type leaf struct {
		name    string
		seconds float64
	}
	var all []leaf
	for _, s := range stages {
		if x := r.Stages[s.name]; x != nil {
			for _, o := range x.Tests {
				for name, seconds := range o.Leaves {
					all = append(all, leaf{name, seconds})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b leaf) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(a.name, b.name))
	})
	for _, l := range all[:min(n, len(all))] {
		out = append(out, fmt.Sprintf("%.2f s  %s", l.seconds, l.name))
	}
	return out
}

// summary writes what the stages gave, and says how many tests failed.
func (r *results) summary(out io.Writer, stages []stage) (failed int) {
	var all counts
	for _, s := range stages {
		c := r.Stages[s.name].count()
		all.passed, all.failed, all.skipped = all.passed+c.passed, all.failed+c.failed, all.skipped+c.skipped
	}
	fmt.Fprintf(out, "slowest ten tests:\n%s\n", strings.Join(r.slowest(stages, 10), "\n"))
	fmt.Fprintln(out, "not run:")
	for _, why := range r.reasons(stages) {
		fmt.Fprintln(out, "  "+why)
	}
	if all.failed > 0 {
		fmt.Fprintln(out, "what failed, once more:")
	}
	for _, s := range stages {
		if x := r.Stages[s.name]; x != nil {
			for _, name := range slices.Sorted(maps.Keys(x.Tests)) {
				if o := x.Tests[name]; o.Result == fail {
					fmt.Fprintf(out, "--- FAIL: %s (%s)\n%s\n", name, s.name, strings.Join(o.Output, "\n"))
				}
			}
		}
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", all.passed, all.failed, all.skipped)
	return all.failed
}
