package e2e

import (
	"strings"
	"testing"
)

// TestGripped records a program whose critical sections of JNI keep collections from beginning. With Serial, up to JDK
// 21, threads then allocate in survivor space: what is there at the next collection is not what the last one left.
func TestGripped(t *testing.T) {
	t.Parallel()
	for _, depth := range []string{"survivors", "full"} {
		eachPair(t, []int{17}, []string{"Serial"},
			func(t *testing.T, major int, gc string) {
				p := program{major: major, gc: gc, heap: "200m", opts: []string{"-Xmn60m"}, main: "Gripped",
					args: []string{"12", "20"}, limit: "4MiB",
					flags: []string{"--overhead-cpu", "0", "--max-sync-pause", "0", "--depth", depth,
						"--sampling", "64KiB"}}
				r := p.start(t)
				r.finish(t)
				rec := r.recorded(t)
				verify(t, rec.dir, 1)
				dump, _, _ := heapcam(t, "dump", "--brief", rec.dir)
				given := strings.Count(dump, "kind=unknown")
				t.Logf("%d collections were given up", given)
				if given == 0 {
					t.Error("no collection was given up: the test shows nothing")
				}
			})
	}
}
