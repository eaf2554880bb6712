package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/probe"
)

const (
	resultsFile = "docs/benchmarks/jdks.json"
	pageFile    = "docs/reference/jdks.md"
)

// result is one part of the set on one JDK.
type result struct {
	Part    string         `json:"part"`
	JDK     int            `json:"jdk"`
	Version string         `json:"version"`
	Date    string         `json:"date"`
	Probe   string         `json:"probe"` // hash of its sources
	Seconds int            `json:"seconds"`
	Passed  map[string]int `json:"passed"` // tests by collector; "": those of none
	Failed  []string       `json:"failed,omitempty"`
}

func (r result) String() string {
	s := fmt.Sprintf("JDK %d, %s: %d passed in %d s", r.JDK, r.Part, total(r.Passed), r.Seconds)
	for _, f := range r.Failed {
		s += "\n  failed: " + f
	}
	return s
}

func total(passed map[string]int) (n int) {
	for _, k := range passed {
		n += k
	}
	return n
}

var testLine = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+)`)

// count reads the output of tests. Those with parts of their own are not counted.
func (r *result) count(out string) {
	all := testLine.FindAllStringSubmatch(out, -1)
	r.Passed = map[string]int{}
	for _, m := range all {
		if slices.ContainsFunc(all, func(o []string) bool { return strings.HasPrefix(o[2], m[2]+"/") }) {
			continue
		}
		switch m[1] {
		case "PASS":
			r.Passed[collectorOf(m[2])]++
		case "FAIL":
			r.Failed = append(r.Failed, m[2])
		}
	}
}

var (
	collectors = []string{"Serial", "Parallel", "G1"}
	// at depth samples; columns of the parts that have tests of them
	withoutAddresses = []string{"ZGC", "ZGenerational", "Shenandoah", "Epsilon"}
)

func collectorOf(test string) string {
	for _, p := range strings.Split(test, "/") {
		p, _, _ = strings.Cut(p, "#") // the second test of a name
		if slices.Contains(collectors, p) || slices.Contains(withoutAddresses, p) {
			return p
		}
	}
	return ""
}

// results are sorted by part, as in the set, and JDK.
type results struct{ all []result }

func load(file string) (*results, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return &results{}, nil
	}
	if err != nil {
		return nil, err
	}
	r := &results{}
	return r, json.Unmarshal(b, &r.all)
}

func (r *results) save() error {
	b, err := json.MarshalIndent(r.all, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(resultsFile, append(b, '\n'), 0o644)
}

func (r *results) of(part string, major int) *result {
	for i := range r.all {
		if r.all[i].Part == part && r.all[i].JDK == major {
			return &r.all[i]
		}
	}
	return nil
}

func (r *results) passed(part string, j jdk, probe string) bool {
	was := r.of(part, j.major)
	return was != nil && was.Version == j.version && was.Probe == probe && len(was.Failed) == 0
}

func (r *results) put(res result) {
	if was := r.of(res.Part, res.JDK); was != nil {
		*was = res
	} else {
		r.all = append(r.all, res)
	}
	place := func(name string) int { return slices.IndexFunc(set, func(p part) bool { return p.name == name }) }
	slices.SortStableFunc(r.all, func(a, b result) int {
		if a.Part != b.Part {
			return place(a.Part) - place(b.Part)
		}
		return a.JDK - b.JDK
	})
}

const generated = "<!-- Generated from docs/benchmarks/jdks.json: make test-jdks. Do not edit. -->\n"

// page is docs/reference/jdks.md.
func (r *results) page() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `%s# JDKs

heapcam records these JDKs on Linux (x86-64) with Serial, Parallel and G1, and from 17 on with ZGC,
Shenandoah and Epsilon at depth `+"`samples`"+`. %s runs the tests of this page. JDKs before %d are refused.
[JVM tables](jvm-tables.md) says what happens on JDKs that are not here.

A cell has the number of tests that passed. Newer JDKs have more tests, because they have more features. *Other* are
tests that need no particular collector. A dash means that there is no such test for this JDK and collector, or that no
test failed. A JDK works if its rows have no failed test; failed ones are named below their table.

| JDK | version |
|---|---|
`, generated, "`make test-jdks`", probe.Tested()[0])
	for _, major := range probe.Tested() {
		version := "not run"
		for _, one := range r.all {
			if one.JDK == major {
				version = one.Version
			}
		}
		fmt.Fprintf(&b, "| %d | %s |\n", major, version)
	}
	for _, p := range set {
		var failed []string
		columns := r.columns(p.name)
		fmt.Fprintf(&b, "\n## %s\n\nThese tests show that %s.\n\n| JDK | %s | other | failed | date |\n|%s\n",
			strings.ToUpper(p.name[:1])+p.name[1:], p.shows, strings.Join(columns, " | "),
			strings.Repeat("---|", len(columns)+4))
		for _, major := range probe.Tested() {
			one := r.of(p.name, major)
			if one == nil {
				fmt.Fprintf(&b, "| %d |%s not run |\n", major, strings.Repeat(" |", len(columns)+2))
				continue
			}
			fmt.Fprintf(&b, "| %d |", major)
			for _, gc := range append(slices.Clone(columns), "") {
				fmt.Fprintf(&b, " %s |", cell(one.Passed[gc]))
			}
			fmt.Fprintf(&b, " %s | %s |\n", cell(len(one.Failed)), one.Date)
			for _, name := range one.Failed {
				failed = append(failed, fmt.Sprintf("- JDK %d: `%s`", major, name))
			}
		}
		if len(failed) > 0 {
			fmt.Fprintf(&b, "\nFailed:\n\n%s\n", strings.Join(failed, "\n"))
		}
	}
	return b.Bytes()
}

// columns are the collectors of a part.
func (r *results) columns(part string) []string {
	if part == "collectors" {
		return withoutAddresses
	}
	return collectors
}

func cell(n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprint(n)
}

func (r *results) writePage() error { return os.WriteFile(pageFile, r.page(), 0o644) }
