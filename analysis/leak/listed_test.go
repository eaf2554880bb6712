package leak

import (
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
)

// TestListedAt: a verdict names the time at which references were listed, not that of the collection before.
func TestListedAt(t *testing.T) {
	r := heap.NewReplay(&analysistest.Source{})
	h := NewDetector()
	h.Times, h.listings = []float64{20}, 1
	h.Listing(&r.Cursor, nil, 25)
	clock := func(at uint64) string { return ui.Clock(collection.Wall(r.Symbols, at*1e9)) }
	for at, want := range map[float64]string{20: "reference listing, at " + clock(25), 40: "space, at " + clock(40)} {
		if s := h.proven(r.Symbols, &growth{seen: 0.5, seenAt: at}); !strings.Contains(string(s), want) {
			t.Errorf("%s\nwant %s", s, want)
		}
	}
}
