package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/session"
)

// TestDiscover lets an agent find JVMs that run before it and that come after it: recorded, recorded otherwise, ignored
// and not recordable, as the rules and the JVMs say; then the rules change.
func TestDiscover(t *testing.T) {
	t.Parallel()
	needReader(t)
	dir := t.TempDir()
	mark := "-Dheapcam.test=" + filepath.Base(filepath.Dir(dir))
	conf := filepath.Join(dir, "heapcam.yaml")
	write := func(ignored, more string) {
		t.Helper()
		if err := os.WriteFile(conf, fmt.Appendf(nil, `discover: true
depth: survivors
%srules:
  - match: {flag: "%s.full"}
    depth: full
  - match: {flag: "%s.ignored"}
    record: %s
  - match: {flag: "%s*"}
  - match: {} # JVMs of others on this machine
    record: false
`, more, mark, mark, ignored, mark), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("false", "")
	file := filepath.Join(dir, "end")
	launch := func(what, gc string, opts ...string) *running {
		p := program{major: 17, gc: gc, heap: "64m", opts: append(opts, mark+"."+what), main: "Until",
			args: []string{file, "2000", "1"}}
		r := p.plain(t)
		await(t, "pid", func() bool { return r.pid() > 0 })
		return r
	}
	early := launch("early", "Serial")
	d := newDaemon(t, "--config", conf)
	d.start(t)
	begun := time.Now()
	late, deep, ignored := launch("late", "G1"), launch("full", "Parallel"), launch("ignored", "G1")
	hidden := launch("hidden", "Serial", "-XX:-UsePerfData")
	state := func(r *running) (s session.Status, o api.Other) {
		st := d.status(t)
		for _, s = range st.JVMs {
			if s.PID == r.pid() {
				return s, o
			}
		}
		for _, o = range st.Others {
			if o.PID == r.pid() {
				return session.Status{}, o
			}
		}
		return session.Status{}, api.Other{}
	}
	for _, c := range []struct {
		r     *running
		depth string
	}{{early, "survivors"}, {late, "survivors"}, {deep, "full"}} {
		await(t, "a recording", func() bool { s, _ := state(c.r); return s.Phase == session.Recording && s.LastGC > 2 })
		if s, _ := state(c.r); s.Depth != c.depth {
			t.Errorf("%s is recorded at depth %s, want %s", s.ID, s.Depth, c.depth)
		}
	}
	t.Logf("all are recorded after %v", time.Since(begun))
	await(t, "verdicts", func() bool {
		_, i := state(ignored)
		_, n := state(hidden)
		return i.Ignored && strings.Contains(i.Reason, "heapcam.yaml:6") && strings.Contains(n.Reason, "UsePerfData") &&
			n.Remedy != ""
	})
	reload := func() (string, int) {
		_, errs, code := heapcam(t, "reload", "--socket", d.sock)
		return errs, code
	}
	write("true", "max_trace_size: 7MiB\n")
	if errs, code := reload(); code != 2 || !strings.Contains(errs, "heapcam.yaml:3:17") {
		t.Errorf("reload with another max_trace_size: status %d: %s", code, errs)
	}
	if _, i := state(ignored); !i.Ignored {
		t.Error("a part of what was refused as a whole took effect")
	}
	write("true", "")
	if errs, code := reload(); code != 0 {
		t.Errorf("reload: status %d: %s", code, errs)
	}
	await(t, "the JVM that was ignored", func() bool {
		s, _ := state(ignored)
		return s.Phase == session.Recording && s.LastGC > 3 // two listings to compare
	})
	for _, r := range []*running{early, late, deep, ignored, hidden} {
		r.end(t, file)
	}
	d.stop(t)
	for _, rec := range d.recordings() {
		verify(t, rec, 1)
	}
}
