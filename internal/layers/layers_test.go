// Package layers holds the rule that imports point down only.
package layers

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/heapcam/heapcam/"

// level of each package; an import must go to a lower one. Why: the recording path must stay small enough to be trusted
// on a production host, so it never pulls in the reading path, and trace is the vocabulary that all share.
var level = map[string]float64{
	"trace": 0, "config": 0, "trace/ramp": 0.5, "trace/tracetest": 1, "trace/columns": 1,
	"trace/references":                1,
	"trace/site":                      0.5,
	"trace/references/referencestest": 2, "probe": 0, "packaging": 0,
	"coverage": 1, "analysis/stats": 1, "ringstore": 2, "ringstore/storetest": 3,
	"ringstore/vfs": 0, "ringstore/segment": 1.2, "ringstore/folder": 1.4, "ringstore/quota": 1.4,
	"ringstore/recording": 1.6, "ringstore/incident": 1.6, "ringstore/pull": 1.8,
	"shmring": 2, "classify": 2, "classify/grouping": 2.5, "shmring/ringtest": 3,
	"heap/symbols": 1, "heap/reflisting": 2, "heap/samples": 1.1, "heap/state": 2, "heap/state/statetest": 3,
	"heap/match": 3, "heap/view": 3, "heap": 4,
	"emergency": 3, "syncpoint": 3, "agent/attach": 2, "agent/logs": 0, "agent/governor": 3, "agent/jvms": 3,
	"agent/resource": 2, "agent/pods": 2,
	"svc": 4, "agent/place": 4, "agent/api/apitest": 0, "agent/session/sessiontest": 4,
	"agent/upload": 3, "agent/profiles": 6, "agent/tables": 6,
	"agent/quota": 4, "agent/definitions": 4, "agent/session": 5, "agent/spool": 6, "agent/api": 7, "agent": 8,
	"agent/metrics":         9,
	"analysis/analysistest": 3, "analysis/cost": 3, "analysis/graph": 3, "analysis/collection": 5, "analysis/sites": 6,
	"analysis/analysistest/sitedtest": 5,
	"analysis/history":                7, "analysis/lifetimes": 7, "analysis/drag": 7, "analysis/whatif": 8,
	"analysis/leak": 8, "analysis/compare": 9,
	"analysis/retention": 7, "analysis": 9, "analysis/export": 10, "analysis/check": 10,
	"web": 11, "cmd/heapcam": 12,
}

var recording = []string{"agent", "emergency", "syncpoint", "shmring", "ringstore"}
var reading = []string{"heap", "classify", "analysis"}

func TestLayers(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Doc,GoFiles", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	for dec.More() {
		var p struct {
			ImportPath, Doc  string
			Imports, GoFiles []string
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, module)
		if len(p.GoFiles) > 0 && !strings.HasPrefix(p.Doc, "Package ") && !strings.HasPrefix(p.Doc, "Command ") {
			t.Errorf("%s has no package comment: each package opens with its job, terms and invariants", name)
		}
		if strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "bench") ||
			strings.HasPrefix(name, "tools/") {
			continue
		}
		l, ok := level[name]
		if !ok && len(p.GoFiles) > 0 {
			t.Errorf("%s has no layer: give it one in this table", name)
			continue
		}
		for _, i := range p.Imports {
			if !strings.HasPrefix(i, module) || strings.HasPrefix(i, module+"internal/") {
				continue
			}
			i = strings.TrimPrefix(i, module)
			if il, ok := level[i]; ok && il >= l {
				t.Errorf("%s imports %s: imports point down only, so that each layer can be tested and trusted "+
					"without those above",
					name, i)
			}
		}
	}
}

// TestRecordingStaysSmall: the recording path never imports the reading path, be it by way of other packages. What all
// depend on is one call of go list.
func TestRecordingStaysSmall(t *testing.T) {
	deps := dependencies(t)
	for name, l := range level {
		for _, d := range deps[name] {
			if dl, ok := level[d]; ok && dl >= l {
				t.Errorf("%s depends on %s: dependencies point down only, however long the way", name, d)
			}
			if under(name, recording) && under(d, reading) {
				t.Errorf("%s depends on %s: the recording path never imports the reading path", name, d)
			}
		}
	}
	if !slices.Contains(deps["agent"], "trace") {
		t.Error("the test finds no dependencies at all")
	}
}

// under says whether a package is one of those folders or below one.
func under(name string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return name == f || strings.HasPrefix(name, f+"/") })
}

// dependencies gives what each package of ours depends on of ours, on the way through any number of packages.
func dependencies(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if .Module}}{{.ImportPath}} {{join .Deps \" \"}}{{end}}",
		module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := map[string][]string{}
	for l := range strings.Lines(string(out)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(l), " ")
		if name, ok := strings.CutPrefix(name, module); ok {
			for _, d := range strings.Fields(rest) {
				if d, ok := strings.CutPrefix(d, module); ok {
					deps[name] = append(deps[name], d)
				}
			}
		}
	}
	return deps
}

// TestNothingIsExecuted: neither the recording path nor what it looks at JVMs with can start a program or load code,
// whoever laid it there. (The library goes to the JVM; the agent never opens it.)
func TestNothingIsExecuted(t *testing.T) {
	for _, p := range append([]string{"agent/attach", "agent/jvms",
		"agent/resource", "agent/place", "agent/metrics"}, recording...) {
		out, err := exec.Command("go", "list", "-deps", module+p).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range strings.Fields(string(out)) {
			if d == "os/exec" || d == "plugin" {
				t.Errorf("%s can execute what others made: it depends on %s", p, d)
			}
		}
	}
}

// TestThreatsHaveTests: each test that docs/security.md names is there.
func TestThreatsHaveTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	err = filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			b, err := os.ReadFile(path)
			all.Write(b)
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w+`).FindAllString(string(page), -1)
	for _, n := range names {
		if !bytes.Contains(all.Bytes(), []byte("\nfunc "+n+"(")) {
			t.Errorf("docs/security.md names %s: there is no such test", n)
		}
	}
	if len(names) < 20 {
		t.Errorf("docs/security.md names %d tests", len(names))
	}
}
