package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/ringstore"
)

// TestFreeze: a JVM that goes without goodbye, whatever the cause, leaves an incident that reads up to its last collection; one that says
// goodbye leaves none, an OutOfMemoryError that it has caught included.
func TestFreeze(t *testing.T) {
	majors := []int{17, 25}
	for _, c := range []struct {
		name   string
		opts   []string
		args   []string
		frozen bool
	}{
		{"exit", []string{"-XX:+ExitOnOutOfMemoryError"}, []string{"heap"}, true},
		{"crash", []string{"-XX:+CrashOnOutOfMemoryError", "-XX:-CreateCoredumpOnCrash", "-XX:ErrorFile=/dev/null"}, []string{"heap"}, true},
		{"killed by itself", []string{"-XX:OnOutOfMemoryError=kill -9 %p"}, []string{"heap"}, true},
		{"direct memory", []string{"-XX:+ExitOnOutOfMemoryError", "-XX:MaxDirectMemorySize=8m"}, []string{"direct"}, false}, // thrown by the library: the JVM ends as with any exception
		{"caught", []string{"-XX:OnOutOfMemoryError=true"}, []string{"heap", "caught"}, false},
	} {
		for i, major := range majors {
			if !full && i != len(c.name)%2 { // half of them
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				p := program{major: major, gc: collectors[(i+len(c.name))%len(collectors)], heap: "48m", main: "Oom", opts: c.opts, args: c.args, limit: "4MiB"}
				r := p.start(t)
				r.wait(t)
				n := &ringstore.Incidents{Dir: filepath.Join(r.out, "incidents")}
				all, err := n.List()
				if err != nil {
					t.Fatal(err)
				}
				if !c.frozen {
					for _, i := range all {
						if !strings.Contains(i.Reason, "storm") {
							t.Errorf("an incident: %+v", i)
						}
					}
					return
				}
				found := ""
				for _, i := range all {
					if i.Auto {
						found = i.ID
					}
				}
				if found == "" {
					t.Fatalf("no incident; %s", tail(r.stderr.String()))
				}
				file := filepath.Join(t.TempDir(), "incident.heapcam")
				if out, errs, code := heapcam(t, "pull", "--out", r.out, "--incident", found, "-o", file); code != 0 {
					t.Fatalf("pull: status %d\n%s%s", code, out, errs)
				}
				verify(t, file, 1)
				i, err := n.Find(found)
				if err != nil || int(i.LastGC) < r.recorded(t).collections {
					t.Errorf("the incident ends at %d, %d collections were recorded", i.LastGC, r.recorded(t).collections)
				}
			})
		}
	}
}
