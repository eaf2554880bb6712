package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestSideBySide runs two recorders with the same folder for recordings: each records its own JVM, and says nothing of
// the other's.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	var wg sync.WaitGroup
	var said [2]string
	for i := range said {
		wg.Go(func() {
			// For five seconds: a recorder looks for JVMs that nobody records in its first three
			c := exec.Command(tool, "run", "--out", out, "--overhead-cpu", "0", "--",
				filepath.Join(jdk(t, 17), "bin", "java"), "-Xmx64m", "-cp", classPath(t), "Churn", "5")
			b, err := c.CombinedOutput()
			if said[i] = string(b); err != nil {
				t.Errorf("%v: %s", err, b)
			}
		})
	}
	wg.Wait()
	for _, s := range said {
		if strings.Contains(s, "WRN") || strings.Count(s, "heapcam: recorded") != 1 {
			t.Errorf("two recorders side by side:\n%s", s)
		}
	}
}
