package logs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	printed = regexp.MustCompile(`\blog_line\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)`)
	literal = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	verbs   = regexp.MustCompile(`%(?:#llx|llu|u|d|s|\.\*s)`)
)

// TestProbeLines: Probe has the lines that the probe's sources print, and no others.
func TestProbeLines(t *testing.T) {
	sources, err := filepath.Glob(root + "/probe/src/*.c")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, path := range sources {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		calls := bytes.Count(b, []byte("log_line(")) - bytes.Count(b, []byte("void log_line("))
		found := printed.FindAllSubmatch(b, -1)
		if len(found) != calls {
			t.Errorf("%s: %d of %d calls of log_line have a constant format", path, len(found), calls)
		}
		for _, m := range found {
			var format strings.Builder
			for _, l := range literal.FindAllString(string(m[1]), -1) {
				s, err := strconv.Unquote(l)
				if err != nil {
					t.Fatalf("%s: %s: %v", path, l, err)
				}
				format.WriteString(s)
			}
			seen[format.String()] = true
			if !slices.ContainsFunc(Probe, func(p ProbeLine) bool { return p.Format == format.String() }) {
				t.Errorf("%s: Probe lacks %q", path, &format)
			}
		}
	}
	for _, p := range Probe {
		if !seen[p.Format] {
			t.Errorf("the probe does not print %q", p.Format)
		}
		if p.Level >= warn && p.Remedy == "" || p.Cause == "" {
			t.Errorf("%q: no cause, or no remedy", p.Format)
		}
	}
}

// probeTable lists the probe's lines, with … for what differs.
func probeTable() string {
	var b strings.Builder
	b.WriteString("## The probe, on the JVM's stderr\n\nEach line begins with `heapcam: `. The program runs on in " +
		"each case. A `…` stands for details.\n\n| level | message | cause | remedy |\n|---|---|---|---|\n")
	for _, p := range Probe {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", short[p.Level], verbs.ReplaceAllString(p.Format, "…"), p.Cause,
			p.Remedy)
	}
	return b.String() + "\n"
}
