package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// heapLibrary is Debian's place of VisualVM's reader of heap dumps.
const heapLibrary = "/usr/share/visualvm/visualvm/modules/org-graalvm-visualvm-lib-jfluid-heap.jar"

// TestHprof: VisualVM's heap library finds in the exported heap dump of a real JVM's state as many instances and bytes
// of each class as `heapcam histogram` has, in both layouts of objects.
func TestHprof(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(heapLibrary); err != nil {
		t.Skip("not run: VisualVM's heap library on exported heap dumps (apt-get install visualvm)")
	}
	java := filepath.Join(jdk(t, 17), "bin", "java")
	for _, c := range []struct {
		major int
		gc    string
		opts  []string
	}{{17, "Parallel", nil}, {25, "G1", []string{"-XX:+UseCompactObjectHeaders"}}} {
		t.Run(fmt.Sprintf("%s/%d", c.gc, c.major), func(t *testing.T) {
			p := program{major: c.major, gc: c.gc, main: "Hold", heap: "128m", limit: "64MiB", opts: c.opts}
			r := p.start(t)
			r.stdinW.WriteString("\n\n\n")
			r.finish(t)
			dir := r.recorded(t).dir
			var h struct {
				Objects uint64
				Classes []struct {
					Class          string
					Objects, Bytes uint64
				}
			}
			heapcamJSON(t, &h, "histogram", dir, "--json")
			dump := filepath.Join(t.TempDir(), "heap.hprof")
			_, said, code := heapcam(t, "export", "--format", "hprof", "-o", dump, dir)
			if code != 0 || !strings.Contains(said, fmt.Sprintf("%d objects", h.Objects)) {
				t.Fatalf("status %d, %d objects: %s", code, h.Objects, said)
			}
			out, err := exec.Command(java, "-cp", heapLibrary, "../../bench/compare/HeapLibrary.java",
				dump).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			want, got := map[string][2]uint64{}, map[string][2]uint64{}
			add := func(to map[string][2]uint64, name string, objects, bytes uint64) {
				name = fold(name)
				to[name] = [2]uint64{to[name][0] + objects, to[name][1] + bytes}
			}
			for _, k := range h.Classes {
				add(want, k.Class, k.Objects, k.Bytes)
			}
			for name, n := range parseHistogram(string(out)) {
				add(got, name, n[0], n[1])
			}
			if len(want) < 200 || len(got) != len(want) {
				t.Errorf("%d classes, in the dump %d", len(want), len(got))
			}
			for name, w := range want {
				if got[name] != w {
					t.Errorf("%s: histogram %v, in the dump %v", name, w, got[name])
				}
			}
		})
	}
}
