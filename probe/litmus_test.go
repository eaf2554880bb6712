package probe_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

var expected = regexp.MustCompile(`(?m)^\(\* (never|sometimes): `)

// TestLitmus has herd7 decide each file of testdata/litmus by Arm's own model of memory (aarch64.cat): the ring's words
// in the order in which probe and agent read and write them. What stands there as "never" must be impossible, and
// "sometimes" (the same without a fence) possible. herd7 is of herdtools7, which Debian does not have.
func TestLitmus(t *testing.T) {
	herd, err := exec.LookPath("herd7")
	if err != nil {
		t.Skip("not run: the ring's order of memory in Arm's model (no herd7)")
	}
	files, _ := filepath.Glob("testdata/litmus/*.litmus")
	if len(files) < 10 {
		t.Fatalf("only %d files", len(files))
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"never": "Never", "sometimes": "Sometimes"}
		m := expected.FindSubmatch(text)
		if m == nil {
			t.Errorf("%s does not say what is expected", f)
			continue
		}
		out, err := exec.Command(herd, f).CombinedOutput()
		found := regexp.MustCompile(`(?m)^Observation \S+ (\w+) .*$`).FindSubmatch(out)
		if err != nil || found == nil || string(found[1]) != want[string(m[1])] {
			t.Errorf("%s: %v\n%s", f, err, out)
			continue
		}
		t.Logf("%s", found[0])
	}
}
