package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/agent/place"
	"github.com/heapcam/heapcam/agent/session"
)

// environment reads a file as systemd's EnvironmentFile= does, as far as it uses no quotes.
func environment(t *testing.T, file string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || strings.ContainsAny(value, `"'\$`) {
			t.Errorf("%s: %q", file, line)
		}
		env[key] = value
	}
	return env
}

// TestJavaEnv: a JVM with the package's environment file is recorded by an agent that discovers, without being
// attached to: also one that refuses every attach, and on JDK 21 and later without a warning.
func TestJavaEnv(t *testing.T) {
	needReader(t)
	env := environment(t, "../../packaging/java.env")
	options := env["JAVA_TOOL_OPTIONS"]
	if want := "-agentpath:" + place.PackagedProbe; len(env) != 1 || options != want {
		t.Fatalf("%q, want %s", env, want)
	}
	lib := probeLibrary(t) // where the package would have put it
	options = strings.ReplaceAll(options, place.PackagedProbe, lib)
	d, mark := discoverer(t)
	d.start(t)
	for _, major := range majors() {
		for _, closed := range []string{"", "-XX:-EnableDynamicAgentLoading", "-XX:+DisableAttachMechanism"} {
			file := filepath.Join(t.TempDir(), "end")
			p := program{major: major, gc: "G1", heap: "32m", main: "Until", args: []string{file, "2000", "10"},
				opts: []string{mark}, env: []string{"JAVA_TOOL_OPTIONS=" + options}}
			if closed != "" {
				p.opts = append(p.opts, closed)
			}
			r := p.plain(t)
			await(t, "pid", func() bool { return r.pid() > 0 })
			var s session.Status
			await(t, "a recording", func() bool {
				s, _ = d.of(t, r.pid())
				return s.Phase == session.Recording && s.LastGC > 3
			})
			r.end(t, file)
			await(t, "the end", func() bool { s, _ = d.of(t, r.pid()); return s.Phase.Over() })
			said := r.stderr.String()
			if strings.Contains(said, "loaded dynamically") || strings.Contains(said, "heapcam: ") {
				t.Errorf("JDK %d %s: %s", major, closed, said)
			}
			verify(t, s.Dir, 1)
		}
	}
	d.stop(t)
}
