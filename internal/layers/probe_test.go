package layers

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const probeSource = "../../probe/src"

var include = regexp.MustCompile(`(?m)^\s*#\s*include\s+"([^"]+)"`)

// probeOrder reads probe/src/LAYERS: the place of each file of the probe, from the lowest up. NAME is NAME.h and
// NAME.c.
func probeOrder(t *testing.T) map[string]int {
	f, err := os.Open(filepath.Join(probeSource, "LAYERS"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	order := map[string]int{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line, _, _ := strings.Cut(sc.Text(), "#")
		names := strings.Fields(line)
		for i := 1; i < len(names); i++ {
			name := strings.TrimSuffix(names[i], ".h")
			if _, twice := order[name]; twice {
				t.Errorf("LAYERS names %s twice", name)
			}
			order[name] = len(order) + 1
		}
	}
	return order
}

// TestProbeLayers: the includes of the probe's C files point down only, and each file has its layer. Why: what runs
// inside a pause of somebody's JVM must be readable from the bottom up, each file by what is below it.
func TestProbeLayers(t *testing.T) {
	order := probeOrder(t)
	files, err := filepath.Glob(filepath.Join(probeSource, "*.[ch]"))
	if err != nil || len(files) < 60 {
		t.Fatalf("%d files of the probe, %v", len(files), err)
	}
	seen := map[string]bool{}
	for _, path := range files {
		file := filepath.Base(path)
		name := strings.TrimSuffix(file, filepath.Ext(file))
		seen[name] = true
		at, ok := order[name]
		if !ok {
			t.Errorf("probe/src/%s has no layer: give it one in probe/src/LAYERS", file)
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range include.FindAllStringSubmatch(string(text), -1) {
			to := strings.TrimSuffix(strings.TrimSuffix(m[1], ".h"), ".def")
			if m[1] == "heapcam_abi.h" || to == name {
				continue
			}
			if below, ok := order[to]; !ok || below >= at {
				t.Errorf("probe/src/%s includes %s, which is not below it in probe/src/LAYERS", file, m[1])
			}
		}
	}
	for name := range order {
		if !seen[name] {
			t.Errorf("probe/src/LAYERS names %s: there is no such file", name)
		}
	}
}
