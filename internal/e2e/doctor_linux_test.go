package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestDoctorOfJDK: what doctor says of a real JVM of each JDK holds when it is attached to: from 21 on the JVM prints a
// warning unless it was started as doctor says; one that loads no agents is refused in one line, and prints nothing.
func TestDoctorOfJDK(t *testing.T) {
	t.Parallel()
	needReader(t)
	const flag = "EnableDynamicAgentLoading"
	for _, major := range majors() {
		for _, c := range []struct {
			name  string
			opts  []string
			ok    bool
			noted bool // by doctor, and by the JVM
		}{
			{"as it is", nil, true, major >= 21},
			{"allowed", []string{"-XX:+" + flag}, true, false},
			{"forbidden", []string{"-XX:-" + flag}, false, false},
		} {
			t.Run(fmt.Sprintf("%d/%s", major, c.name), func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "end")
				p := program{major: major, gc: "Serial", heap: "32m", main: "Until",
					args: []string{file, "2000", "10"}, opts: c.opts}
				r := p.plain(t)
				await(t, "pid", func() bool { return r.pid() > 0 })
				saysOfJVM(t, r, major, c.ok, c.noted)
				out := filepath.Join(t.TempDir(), "rec")
				_, errs, code := heapcam(t, "record", "--out", out, "--for", "1s", r.pidText())
				if (code == 0) != c.ok || !c.ok && (code != 5 || strings.Count(errs, "\n") != 1 ||
					!strings.Contains(errs, "-XX:-"+flag)) {
					t.Errorf("record: status %d: %s", code, errs)
				}
				r.end(t, file)
				if warned := strings.Contains(r.stderr.String(), "loaded dynamically"); warned != c.noted {
					t.Errorf("the JVM's stderr: %s", r.stderr.String())
				}
			})
		}
	}
}

// saysOfJVM compares what doctor says, as text and as JSON.
func saysOfJVM(t *testing.T, r *running, major int, ok, noted bool) {
	t.Helper()
	var reply struct {
		JVMs []struct {
			Major      int      `json:"major"`
			Collector  string   `json:"collector"`
			Name       string   `json:"name"`
			Recordable bool     `json:"recordable"`
			Problem    string   `json:"problem"`
			Warnings   []string `json:"warnings"`
		} `json:"jvms"`
	}
	if ok {
		heapcamJSON(t, &reply, "doctor", "--json", r.pidText())
		if len(reply.JVMs) != 1 {
			t.Fatalf("%+v", reply)
		}
		j := reply.JVMs[0]
		if j.Major != major || j.Collector != "Serial" || j.Name != "Until" || !j.Recordable || j.Problem != "" ||
			strings.Contains(strings.Join(j.Warnings, "\n"), "EnableDynamicAgentLoading") != noted ||
			strings.Contains(strings.Join(j.Warnings, "\n"), "untested") {
			t.Errorf("doctor --json: %+v", j)
		}
	}
	out, errs, code := heapcam(t, "doctor", r.pidText())
	words := strings.Join(strings.Fields(out), " ")
	if (code == 0) != ok || !ok && code != 5 ||
		strings.Contains(words, "note: JDK "+fmt.Sprint(major)+" prints a warning on stderr") != noted ||
		strings.Contains(words, "reason: the JVM does not load agents while it runs") == ok {
		t.Errorf("doctor: status %d: %s%s", code, out, errs)
	}
}
