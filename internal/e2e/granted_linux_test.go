package e2e

import (
	"errors"
	"io"
	"testing"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// TestGranted: a collection that was caused by an allocation grants it before it ends. In that place stand remains of
// dead objects, of which none may be in the state.
func TestGranted(t *testing.T) {
	t.Parallel()
	type jvm struct {
		major int
		gc    string
	}
	for _, c := range parts(t, jvm{17, "Serial"}, jvm{25, "Serial"}, jvm{17, "Parallel"}, jvm{25, "Parallel"}) {
		p := program{major: c.major, gc: c.gc, heap: "24m", main: "Granted", args: []string{"3"},
			opts: []string{"-Xmn8m"}, limit: "64MiB"}
		r := p.start(t)
		r.finish(t)
		rec := r.recorded(t)
		all, err := ringstore.OpenRecording(rec.dir)
		if err != nil {
			t.Fatal(err)
		}
		full, most := 0, uint64(0)
		src := &blockSource{files: all.Files}
		h := heap.NewReplay(src)
		for {
			c, err := h.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if !c.Known || c.Kind != trace.PauseFull {
				continue
			}
			full++
			for typ, n := range h.State.PerType() {
				if h.TypeName(uint32(typ)) == "Granted$Stale" {
					most = max(most, n.Objects)
				}
			}
		}
		src.close()
		all.Close()
		t.Logf("%d %s: %d full collections are known", c.major, c.gc, full)
		if full < 5 || most > 1 {
			t.Errorf("%d %s: %d full collections are known, with %d dead objects", c.major, c.gc, full, most)
		}
		verify(t, rec.dir, 1)
	}
}
