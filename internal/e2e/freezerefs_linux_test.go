package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestFreezeReferences: freeze --references takes a listing first, and says why there is none.
func TestFreezeReferences(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	d.start(t)
	p := program{major: 17, gc: "Serial", main: "Steady", args: []string{"1000000", "20000"},
		opts: []string{d.option(t)}}
	r := p.plain(t)
	await(t, "some collections", func() bool {
		var st struct {
			JVMs []struct{ Collections uint64 }
		}
		out, _, _ := heapcam(t, "status", "--json", "--socket", d.sock)
		return json.Unmarshal([]byte(out), &st) == nil && len(st.JVMs) == 1 && st.JVMs[0].Collections > 3
	})
	type incident struct {
		ID         string
		References *struct {
			GC, Objects uint64
			None        string
		}
	}
	freeze := func(args ...string) (i incident) {
		t.Helper()
		heapcamJSON(t, &i, append([]string{"freeze", "--out", d.out, "--json"}, args...)...)
		return i
	}
	i := freeze("--references", "--socket", d.sock)
	if x := i.References; x == nil || x.Objects == 0 || x.None != "" {
		t.Errorf("%+v", x)
	}
	out, said, code := heapcam(t, "holders", filepath.Join(d.out, "incidents", i.ID))
	if code != 0 || !strings.Contains(out, "%") {
		t.Errorf("holders: status %d: %s%s", code, out, said)
	}
	if x := freeze().References; x != nil {
		t.Errorf("nobody asked: %+v", x)
	}
	if x := freeze("--references", "--socket", d.sock, "--max-reference-pause", "1ms").References; x == nil ||
		x.Objects != 0 || x.None == "" {
		t.Errorf("a listing of a millisecond: %+v", x)
	}
	if x := freeze("--references", "--socket", d.sock+".none").References; x == nil ||
		!strings.Contains(x.None, "agent") {
		t.Errorf("no agent: %+v", x)
	}
	r.cmd.Process.Kill()
	r.wait(t)
	await(t, "the end", func() bool { return strings.Contains(d.stderr.String(), "recording ended") })
	if x := freeze("--references", "--socket", d.sock).References; x == nil || x.None == "" {
		t.Errorf("a dead JVM: %+v", x)
	}
}
