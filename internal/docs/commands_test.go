package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	command = regexp.MustCompile("go test ((?:\\./[\\w/.]+ )+)(?:-v |-count=1 )*" +
		"-(?:run|bench) (?:'([^']+)'|([^\\s'`]+))")
	subtests = regexp.MustCompile(`/[^|]*\([^)]*\)[^|]*`)
	function = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w*)\(`)
)

// TestCommands: what the documents say that `go test` shows is there: the packages that a command names hold tests of
// the names that it gives.
func TestCommands(t *testing.T) {
	seen := 0
	pages, err := filepath.Glob("../../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	more, _ := filepath.Glob("../../docs/*.md")
	for _, p := range append(append(pages, more...), "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range command.FindAllStringSubmatch(string(text), -1) {
			names, names2 := subtests.ReplaceAllString(strings.ReplaceAll(m[2]+m[3], `\|`, "|"), ""), []string{}
			for _, n := range strings.Split(names, "|") {
				n, _, _ = strings.Cut(strings.Trim(n, "^$()"), "/")
				if n = strings.Trim(n, "^$()"); strings.Contains("xxx NAME TARGET TestName", n) {
					continue // a word of the reader's own
				}
				names2 = append(names2, n)
			}
			there := testsOf(t, strings.Fields(m[1]))
			for _, n := range names2 {
				if seen++; !strings.Contains(there, n) {
					t.Errorf("%s: %q: there is no %s", filepath.Base(p), m[0], n)
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d commands were found", seen)
	}
}

// testsOf gives the names of all tests of packages, one a line.
func testsOf(t *testing.T, packages []string) string {
	t.Helper()
	var out strings.Builder
	for _, p := range packages {
		pattern := filepath.Join("../..", strings.TrimSuffix(p, "..."), "*_test.go")
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range function.FindAllStringSubmatch(string(b), -1) {
				out.WriteString(m[1] + "\n")
			}
		}
	}
	return out.String()
}
