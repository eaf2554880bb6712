package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// TestMan holds that each verb has its page, the same at the same date, and that nothing in it is an accident of roff.
func TestMan(t *testing.T) {
	dir := t.TempDir()
	date := time.Unix(1700000000, 0).UTC()
	if err := writeMan(newRoot(), dir, date); err != nil {
		t.Fatal(err)
	}
	groff, _ := exec.LookPath("groff")
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			return
		}
		path := filepath.Join(dir, "man1", strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			return
		}
		if string(b) != string(manPage(c, date)) {
			t.Errorf("%s: another page the second time", path)
		}
		for _, l := range strings.Split(string(b), "\n") {
			if strings.HasPrefix(l, "'") || strings.HasPrefix(l, ".") && !strings.HasPrefix(l, ".TH ") &&
				!strings.HasPrefix(l, ".S") && !strings.HasPrefix(l, ".B") &&
				!slices.Contains([]string{".TP", ".TP 2", ".PP", ".nf", ".fi"}, l) {
				t.Errorf("%s: %q", path, l)
			}
		}
		for _, e := range exitDocs {
			if !strings.Contains(string(b), "\n.B "+roff(e.code)+"\n") {
				t.Errorf("%s: no word of exit code %s", path, e.code)
			}
		}
		if groff != "" {
			if out, err := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z", path).CombinedOutput(); err != nil ||
				len(out) > 0 {
				t.Errorf("%s: %v %s", path, err, out)
			}
		}
		for _, s := range c.Commands() {
			each(s)
		}
	}
	each(newRoot())
	for _, f := range []string{"heapcam.bash", "_heapcam", "heapcam.fish"} {
		if st, err := os.Stat(filepath.Join(dir, "completions", f)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", f, err)
		}
	}
}
