package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPage fails when the page was not made from the results that are committed.
func TestPage(t *testing.T) {
	r, err := load(filepath.Join("../..", resultsFile))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join("../..", pageFile))
	if err != nil || !bytes.Equal(got, r.page()) {
		t.Errorf("%s is stale (%v): run `go run ./tools/test-jdks -page`", pageFile, err)
	}
}

// TestSet: the names of the set are those of tests.
func TestSet(t *testing.T) {
	files, _ := filepath.Glob("../../internal/e2e/*_test.go")
	more, _ := filepath.Glob("../../probe/*_test.go")
	files = append(files, more...)
	var all strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	for _, p := range set {
		names := strings.Trim(p.tests, "^$")
		prefix, rest, ok := strings.Cut(strings.TrimSuffix(names, ")"), "(")
		for _, n := range strings.Split(rest, "|") {
			if !ok {
				n = ""
			}
			if !strings.Contains(all.String(), "func "+prefix+n+"(t *testing.T)") {
				t.Errorf("%s: there is no %s", p.name, prefix+n)
			}
		}
	}
}

func TestCount(t *testing.T) {
	r := result{}
	r.count(`=== RUN   TestPairs
--- FAIL: TestPairs (0.00s)
    --- PASS: TestPairs/G1/21 (20.38s)
        --- PASS: TestPairs/G1/21/survivors (6.36s)
        --- PASS: TestPairs/G1/21/full (14.02s)
    --- FAIL: TestPairs/Serial/21 (1.00s)
        --- FAIL: TestPairs/Serial/21/full (1.00s)
    --- SKIP: TestPairs/Parallel/21 (0.00s)
--- PASS: TestKillJVM (1.00s)
    --- PASS: TestKillJVM/G1 (1.00s)
    --- PASS: TestKillJVM/G1#01 (1.00s)
--- PASS: TestKillRecorder (1.00s)
FAIL
`)
	if want := map[string]int{"G1": 4, "": 1}; !maps.Equal(r.Passed, want) {
		t.Errorf("passed %v, want %v", r.Passed, want)
	}
	if want := []string{"TestPairs/Serial/21/full"}; !slices.Equal(r.Failed, want) {
		t.Errorf("failed %v, want %v", r.Failed, want)
	}
}

// TestResume: what has passed counts for the same JDK and the same probe only.
func TestResume(t *testing.T) {
	r := &results{}
	j := jdk{major: 21, version: "21.0.5 Debian"}
	r.put(result{Part: "oracle", JDK: 21, Version: j.version, Probe: "a"})
	r.put(result{Part: "pairs", JDK: 25, Version: "25", Probe: "a", Failed: []string{"x"}})
	r.put(result{Part: "pairs", JDK: 21, Version: j.version, Probe: "a"})
	if r.all[0].Part != "pairs" || r.all[0].JDK != 21 || r.all[2].Part != "oracle" {
		t.Errorf("not in order: %v", r.all)
	}
	other := jdk{major: 21, version: "21.0.6 Debian"}
	if !r.passed("pairs", j, "a") || r.passed("pairs", j, "b") || r.passed("pairs", other, "a") ||
		r.passed("pairs", jdk{major: 25, version: "25"}, "a") || r.passed("guard", j, "a") {
		t.Error("the wrong results count")
	}
}
