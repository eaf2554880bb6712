package main

import (
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/internal/ui"
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

// TestSigned: a change has a sign, and none has none.
func TestSigned(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1: "+1 B", -2048: "−2.0 KiB"} {
		if got := signed(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// TestSplitID: an incident has the pid of its recording, whose start may be a number too.
func TestSplitID(t *testing.T) {
	for id, want := range map[string]struct {
		name string
		pid  int
	}{
		"Carts-14013-4685":                   {"Carts", 14013},
		"my-shop-14013-tgo3":                 {"my-shop", 14013},
		"Carts-14013-4685-20261128T110441Z":  {"Carts", 14013},
		"my-shop-12-tgo3-20261128T110441Z-2": {"my-shop", 12},
		"One-8256-tgoj-20261128T142039Z":     {"One", 8256},
		"whatever":                           {"whatever", 0},
	} {
		if name, pid := splitID(id); name != want.name || pid != want.pid {
			t.Errorf("%s: %s, pid %d", id, name, pid)
		}
	}
}
