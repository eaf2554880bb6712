package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stream is what go test -json says of a package in which A passes, B fails, C is skipped and D is running when the
// test binary dies.
const stream = `{"Action":"start"}
{"Action":"run","Test":"TestA"}
{"Action":"output","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"run","Test":"TestA/one"}
{"Action":"output","Test":"TestA/one","Output":"    a_test.go:7: not run: JDK 25 (HEAPCAM_FULL=1)\n"}
{"Action":"pass","Test":"TestA/one","Elapsed":3.5}
{"Action":"pass","Test":"TestA/two","Elapsed":0.1}
{"Action":"pass","Test":"TestA","Elapsed":3.6}
no line of its own
{"Action":"output","Test":"TestB","Output":"    b_test.go:9: wrong\n"}
{"Action":"fail","Test":"TestB","Elapsed":0.2}
{"Action":"skip","Test":"TestC","Elapsed":0}
{"Action":"run","Test":"TestD"}
{"Action":"output","Test":"TestD","Output":"panic: over\n"}
`

func followed(t *testing.T, text string, err error) *results {
	t.Helper()
	r := &results{Stages: map[string]*stageResults{}, file: filepath.Join(t.TempDir(), "bin", "results.json"),
		quiet: true}
	r.expect("p", []string{"TestA", "TestB", "TestC", "TestD", "TestE"})
	w := watch{stage: "p", r: r, running: map[string]*outcome{}}
	w.follow(context.Background(), strings.NewReader(text))
	w.end(err, "")
	return r
}

// TestFollow: tests are noted one by one as they end, and what had not ended when the command did has failed.
func TestFollow(t *testing.T) {
	r := followed(t, stream, errors.New("exit status 2"))
	x := r.Stages["p"].Tests
	for name, want := range map[string]string{"TestA": pass, "TestB": fail, "TestC": skip, "TestD": fail} {
		if x[name] == nil || x[name].Result != want {
			t.Errorf("%s: %+v, want %s", name, x[name], want)
		}
	}
	if len(x) != 4 {
		t.Errorf("%d tests", len(x))
	}
	if a := x["TestA"]; len(a.Output) > 0 || !slices.Equal(a.NotRun, []string{"not run: JDK 25 (HEAPCAM_FULL=1)"}) ||
		len(a.Leaves) != 1 || a.Leaves["TestA/one"] != 3.5 {
		t.Errorf("%+v", a)
	}
	if !slices.Contains(x["TestB"].Output, "    b_test.go:9: wrong") ||
		!slices.Contains(x["TestD"].Output, "panic: over") {
		t.Errorf("what the failed tests said is missing: %+v %+v", x["TestB"], x["TestD"])
	}
	if left := r.left("p", r.Stages["p"].Names); !slices.Equal(left, []string{"TestB", "TestC", "TestD", "TestE"}) {
		t.Errorf("%v are left", left)
	}
	if c := r.Stages["p"].count(); c.passed != 1 || c.failed != 2 || c.skipped != 1 || c.left != 1 {
		t.Errorf("%+v", c)
	}
}

// TestFailsAsAWhole: a command that fails without a failed test has failed, until its tests have ended.
func TestFailsAsAWhole(t *testing.T) {
	r := followed(t, `{"Action":"output","Output":"FAIL p [build failed]\n"}`, errors.New("exit status 1"))
	if o := r.Stages["p"].Tests[whole]; o == nil || o.Result != fail {
		t.Fatalf("%+v", r.Stages["p"])
	}
	r.put("p", "TestA", &outcome{Result: pass})
	if c := r.Stages["p"].count(); c.failed != 0 || c.passed != 1 {
		t.Errorf("%+v", c)
	}
}

// TestResume: results are there again after a run that was stopped, unless what they depend on has changed.
func TestResume(t *testing.T) {
	t.Chdir(t.TempDir())
	keys := map[string]string{"p": "1", "q": "2"}
	r := load("abc", keys, true)
	r.quiet = true
	r.put("p", "TestA", &outcome{Result: fail})
	r.put("p", "TestA", &outcome{Result: pass})
	r.put("q", "TestB", &outcome{Result: pass})
	if n := len(load("abd", keys, true).left("p", []string{"TestA"})); n != 0 {
		t.Errorf("%d left of a test that passed", n)
	}
	if o := load("abc", keys, true).Stages["p"].Tests["TestA"]; o.Runs != 2 {
		t.Errorf("%d runs", o.Runs)
	}
	changed := map[string]string{"p": "3", "q": "2"}
	r = load("abc", changed, true)
	r.quiet = true
	if len(r.left("p", []string{"TestA"})) != 1 || len(r.left("q", []string{"TestB"})) != 0 {
		t.Errorf("p has changed, q has not: %+v", r.Stages)
	}
	r.expect("p", []string{"TestA", "TestN"})
	if c := r.Stages["p"].count(); c.earlier != 1 || c.left != 1 || c.passed != 0 {
		t.Errorf("a pass of before the change: %+v", c)
	}
	if got := r.batches("p", []string{"TestA", "TestN"}); len(got) != 2 || got[0][0] != "TestN" {
		t.Errorf("%v: what never passed is to run first", got)
	}
	if text := page(r, []stage{{name: "p"}}, ""); !strings.Contains(text, "`abc`: 1 tests: `TestA`") {
		t.Error(text)
	}
	r.put("p", "TestA", &outcome{Result: fail})
	if c := r.Stages["p"].count(); c.earlier != 0 || c.failed != 1 {
		t.Errorf("it failed after the change: %+v", c)
	}
	r.put("p", "TestA", &outcome{Result: pass})
	if n := len(load("abc", keys, false).left("p", []string{"TestA"})); n != 1 {
		t.Error("results of another run are used")
	}
	for _, torn := range []string{"{", `{"stages": {"p": null}}`, `{"stages": {"p": {"key": "1"}}}`} {
		if err := os.WriteFile(resultsFile, []byte(torn), 0o600); err != nil {
			t.Fatal(err)
		}
		if n := len(load("abc", keys, true).Stages); n != 0 {
			t.Errorf("%d stages of %s", n, torn)
		}
	}
}

// TestKeys: a stage depends on what its packages import and on nothing else, unless its tests reach further.
func TestKeys(t *testing.T) {
	t.Chdir("../..")
	all, err := stages()
	if err != nil {
		t.Fatal(err)
	}
	in, err := readInputs()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		stage, file string
		depends     bool
	}{
		{"analysis/stats", "go.sum", true}, {"analysis/stats", "heap/replay.go", false},
		{"heap", "heap/replay.go", true}, {"trace", "docs/format/stream.md", true},
		{"heap", "trace/doc.go", true}, {"heap", "docs/glossary.md", false},
		{"internal/e2e", "probe/src/epoch.c", true}, {"internal/e2e", "docs/benchmarks/test-full.md", false},
		{"internal/docs", "docs/tutorial.md", true}, {"fuzzing", "trace/doc.go", true},
	} {
		i := slices.IndexFunc(all, func(s stage) bool { return s.name == c.stage })
		n := slices.Index(in.names, c.file)
		if i < 0 || n < 0 {
			t.Fatalf("%v is not there", c)
		}
		before, err := in.key(&all[i])
		if err != nil {
			t.Fatal(err)
		}
		kept := in.files[n]
		in.files[n] = "another content\t" + c.file
		after, _ := in.key(&all[i])
		in.files[n] = kept
		if (before != after) != c.depends {
			t.Errorf("%s depends on %s: %v, want %v", c.stage, c.file, before != after, c.depends)
		}
	}
}

// TestPage: the page says which stages did not run, what passed only when it was repeated, and what was left out.
func TestPage(t *testing.T) {
	r := followed(t, stream, errors.New("exit status 2"))
	r.put("p", "TestB", &outcome{Result: pass})
	text := page(r, []stage{{name: "p"}, {name: "never"}}, "2 cores")
	for _, want := range []string{"| p | 2 | 0 | 1 | 1 | 1 |", "| all of these | 2 | 0 | 1 | 1 | 1 |", "- `never`\n",
		"- `TestB` of p: 2 runs\n", "- JDK 25 (HEAPCAM_FULL=1)\n", "- 3.50 s  TestA/one\n", "- Machine: 2 cores\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for range 40 {
		r.put("p", "TestB"+strings.Repeat("x", r.Stages["p"].count().passed), &outcome{Result: pass})
	}
	r.Stages["p"].Names = slices.Sorted(maps.Keys(r.Stages["p"].Tests))
	r.Stages["p"].change("other")
	for line := range strings.Lines(page(r, []stage{{name: "p"}}, "2 cores")) {
		if len(line) > 120 {
			t.Errorf("a line of %d columns: %s", len(line), line)
		}
	}
	r = followed(t, stream, errors.New("exit status 2"))
	r.put("p", "TestB", &outcome{Result: pass})
	var out strings.Builder
	if n := r.summary(&out, []stage{{name: "p"}, {name: "never"}}); n != 1 ||
		!strings.Contains(out.String(), "2 passed, 1 failed, 1 skipped") {
		t.Errorf("%d failed:\n%s", n, &out)
	}
}

// TestStages: each package with tests is a stage, once.
func TestStages(t *testing.T) {
	t.Chdir("../..")
	all, err := stages()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range all {
		if seen[s.name] {
			t.Errorf("%s is there twice", s.name)
		}
		seen[s.name] = true
	}
	for _, want := range []string{"go vet", "internal/e2e", "trace", "agent/session with the race detector", "fuzzing",
		"tools/test-full"} {
		if !seen[want] {
			t.Errorf("no stage %s", want)
		}
	}
}

// TestChoose: packages, stages and tests are selected by name, and it is an error if nothing is left.
func TestChoose(t *testing.T) {
	t.Chdir("../..")
	all, err := stages()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		only  selection
		least int
	}{
		{selection{}, len(all)},
		{selection{packages: []string{"./trace/...", "./coverage"}}, 3},
		{selection{stage: "with the race detector$"}, len(raced)},
		{selection{stage: "^internal/e2e$", test: "^TestKnownStacks$"}, 1},
		{selection{packages: []string{"./internal/monitoring/none"}}, -1},
		{selection{stage: "^none$"}, -1},
		{selection{stage: "^go vet$", test: "."}, -1}, // it has no tests
		{selection{test: "("}, -1},
	} {
		some, err := c.only.choose(all)
		if (err != nil) != (c.least < 0) || len(some) < c.least {
			t.Errorf("%+v: %d stages, %v", c.only, len(some), err)
		}
		for _, s := range some {
			if c.only.test != "" && (s.chosen == nil || s.chosen.MatchString("TestOther")) {
				t.Errorf("%+v: all tests of %s", c.only, s.name)
			}
		}
	}
}
