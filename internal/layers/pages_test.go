package layers

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// tableOf reads the tables of a design page: the names in the second column, with the layer in the first. A layer like
// "0 to 2" has those ends. below: the row names a folder, too, with what is below it.
type placed struct {
	low, high float64
	below     bool
}

func tableOf(t *testing.T, page string) map[string]placed {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs/design", page))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]placed{}
	for l := range strings.Lines(string(text)) {
		cells := strings.Split(l, "|")
		if len(cells) < 4 {
			continue
		}
		from, to, isRange := strings.Cut(strings.TrimSpace(cells[1]), " to ")
		low, err := strconv.ParseFloat(from, 64)
		if err != nil {
			continue // the head of a table
		}
		p := placed{low, low, strings.Contains(cells[2], "and below")}
		if isRange {
			if p.high, err = strconv.ParseFloat(to, 64); err != nil {
				t.Errorf("%s: layer %q", page, cells[1])
			}
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[2], -1) {
			if _, twice := rows[m[1]]; twice {
				t.Errorf("%s names %s twice", page, m[1])
			}
			rows[m[1]] = p
		}
	}
	if len(rows) < 20 {
		t.Fatalf("%s: only %d names in its tables", page, len(rows))
	}
	return rows
}

// TestPackagesPage: the design page names every package at the layer that the test's table gives it.
func TestPackagesPage(t *testing.T) {
	rows := tableOf(t, "0015-packages.md")
	for name, p := range rows {
		if l, ok := level[name]; !ok || l < p.low || l > p.high {
			t.Errorf("0015-packages.md has %s at layer %v to %v, the table in layers_test.go at %v (there: %v)", name,
				p.low, p.high, l, ok)
		}
	}
	for name, l := range level {
		// Packages for tests have a sentence of their own.
		if _, ok := rows[name]; ok || strings.HasSuffix(name, "test") {
			continue
		}
		within := false
		for folder, p := range rows {
			within = within || p.below && strings.HasPrefix(name, folder+"/") && p.low <= l && l <= p.high
		}
		if !within {
			t.Errorf("0015-packages.md does not name %s, of layer %v", name, l)
		}
	}
}

// TestProbePage: the design page of the probe names every file at its layer of probe/src/LAYERS.
func TestProbePage(t *testing.T) {
	rows := tableOf(t, "0002-probe-layers.md")
	f, err := os.Open(filepath.Join(probeSource, "LAYERS"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := map[string]bool{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line, _, _ := strings.Cut(sc.Text(), "#")
		names := strings.Fields(line)
		if len(names) == 0 {
			continue
		}
		layer, err := strconv.ParseFloat(names[0], 64)
		if err != nil {
			t.Fatalf("LAYERS: %q", line)
		}
		for _, name := range names[1:] {
			seen[name] = true
			p, ok := rows[name]
			if base, ends := strings.CutSuffix(strings.TrimSuffix(name, "_windows"), "_posix"); !ok && (ends ||
				strings.HasSuffix(name, "_windows")) { // one row for the two systems
				p, ok = rows[strings.TrimSuffix(base, "_windows")]
			}
			if !ok {
				_, ok = rows[strings.TrimSuffix(name, ".h")]
				p = rows[strings.TrimSuffix(name, ".h")]
			}
			if !ok || p.low != layer {
				t.Errorf("0002-probe-layers.md has %s at layer %v (there: %v), LAYERS at %v", name, p.low, ok, layer)
			}
		}
	}
	for name := range rows {
		if !seen[name] && !seen[name+".h"] {
			t.Errorf("0002-probe-layers.md names %s, which LAYERS does not", name)
		}
	}
}
