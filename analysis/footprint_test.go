package analysis

import (
	"strings"
	"testing"
)

// TestFootprintText: of the process' memory a figure that did not change is printed once, and that it did not.
func TestFootprintText(t *testing.T) {
	var b strings.Builder
	p := &Process{Peak: 60 << 20,
		First: Footprint{RSS: 51 << 20, Heap: 1 << 30, Classes: 1000, Metaspace: 3 << 20, Threads: 12},
		Last:  Footprint{RSS: 51<<20 + 99, Heap: 2 << 30, Classes: 1200, Metaspace: 3 << 20, Threads: 12}}
	p.write(&b)
	for _, want := range []string{"  Resident      51.0 MiB, unchanged; at most 60.0 MiB\n", "1.0 GiB → 2.0 GiB\n",
		"1,000 → 1,200\n", "  Metaspace     3.0 MiB, unchanged\n", "  Threads       12, unchanged\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
}
