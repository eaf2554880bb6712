package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// TestDiffMarks: all that is beside an estimate is marked as one, and the legend says why parts exceed the whole.
func TestDiffMarks(t *testing.T) {
	bytes := func(after uint64) analysis.Changes {
		r := analysis.Range{Value: after, Low: after, High: after}
		return analysis.Changes{Born: r, After: r}
	}
	site := &analysis.Change{Key: "a.B.c", Bytes: bytes(200), Estimated: true}
	unknown := &analysis.Change{Key: "(site unknown)", Bytes: bytes(90)}
	small := &analysis.Change{Key: "x", Bytes: bytes(1)}
	class := &analysis.Change{Key: "byte[]", Bytes: bytes(100), Children: []*analysis.Change{site, unknown, small}}
	root := &analysis.Change{Key: "heap", Bytes: bytes(100), Children: []*analysis.Change{class}}
	if !counted(root) || counted(site) || counted(&analysis.Change{Children: []*analysis.Change{unknown}}) {
		t.Error("estimates below what is counted are not found")
	}
	columns := ui.NewColumns(0, ">DIED", ">KEPT", ">BORN", ">NET", "GROUP")
	(&diffOptions{}).print(columns, root, 0, false, 50)
	var out strings.Builder
	columns.Write(&out)
	for _, l := range strings.Split(strings.TrimSpace(out.String()), "\n")[1:] {
		exact := strings.Contains(l, "heap") || strings.Contains(l, "byte[]")
		if strings.Contains(l, "~") == exact {
			t.Errorf("%q", l)
		}
	}
}

// TestUnended: of an incident without an end marker the report says that it was frozen, unless its JVM had ended.
func TestUnended(t *testing.T) {
	n := incidentsIn(t.TempDir(), 1<<30)
	for ended, want := range map[bool]string{false: "none: it was frozen", true: ""} {
		const reason = "the JVM ended without an end marker" // the text says nothing
		n.Ended = ended
		ring := filepath.Join(t.TempDir(), "app-1-a")
		if err := os.Mkdir(ring, 0o700); err != nil {
			t.Fatal(err)
		}
		oddRing(t, ring, func(_ int, b trace.Block) (trace.Block, bool) { return b, true })
		i, err := n.Freeze(ring, reason, false)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := ringstore.OpenRecording(n.Path(i.ID))
		if err != nil {
			t.Fatal(err)
		}
		if got := unended(rec); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%v: %q", ended, got)
		}
		rec.Manifest = &ringstore.Manifest{Reason: reason, Ended: ended}
		if got := unended(rec); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%v, pulled: %q", ended, got)
		}
		rec.Close()
	}
}
