package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/ringstore"
)

// TestTimeNamespace: the clocks of a time namespace are not those of the host. Wherever the JVM and heapcam are, a JVM
// that runs is alive, and its recording is one.
func TestTimeNamespace(t *testing.T) {
	t.Parallel()
	needRoot(t, "JVMs in time namespaces", "unshare")
	shifted := []string{"unshare", "--time", "--boottime", "100000", "--monotonic", "200000", "--fork"}
	if out, err := exec.Command(shifted[0], append(shifted[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("not run: JVMs in time namespaces: %v: %s", err, out)
	}
	java := filepath.Join(jdk(t, 17), "bin", "java")
	for name, wrap := range map[string][2][]string{"the JVM": {nil, shifted}, "heapcam": {shifted, nil}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := filepath.Join(t.TempDir(), "rec")
			end := filepath.Join(t.TempDir(), "end")
			args := append(append([]string{}, wrap[0]...), tool, "run", "--out", rec, "--")
			args = append(append(args, wrap[1]...), java, "-Xmx64m", "-cp", classPath(t), "Until", end, "20000", "20")
			c := exec.Command(args[0], args[1:]...)
			var said buffer
			c.Stdout, c.Stderr = &said, &said
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			await(t, "the program", func() bool { return strings.Contains(said.String(), "pid ") })
			if err := os.WriteFile(end, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.Wait(); err != nil {
				t.Fatalf("%v: %s", err, said.String())
			}
			if all, _ := (&ringstore.Incidents{Dir: filepath.Join(rec, "incidents")}).List(); len(all) > 0 {
				t.Errorf("%d incidents: %s", len(all), said.String())
			}
			if !strings.Contains(said.String(), "heapcam: recorded Until") {
				t.Errorf("%s", said.String())
			}
		})
	}
}
