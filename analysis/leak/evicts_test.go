package leak

import (
	"math"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/internal/ui"
)

// TestEvicts: what grows evenly in a collection that may drop its elements is a suspect, and the text says what settles
// it.
func TestEvicts(t *testing.T) {
	for _, means := range []ui.Flow{"", "a second collection (static app.Shop.order)"} {
		r, h := world(births(1, 8, forever), every(nil, []float64{30, 45}))
		h.Evicts = func([]sites.Key) ui.Flow { return means }
		l := h.Report(&r.Cursor)
		want := KindLeak
		if means != "" {
			want = KindSuspect
		}
		if len(l.Verdicts) != 1 || l.Verdicts[0].Kind != want {
			t.Fatalf("%q: %+v", means, l.Verdicts)
		}
		v := &l.Verdicts[0]
		if means != "" && (!strings.Contains(string(v.Sentence), "static app.Shop.order") ||
			v.Confidence > maxUnproven || strings.Contains(string(l.found()), "--settle")) {
			t.Errorf("%s %s", v.Sentence, l.found())
		}
	}
}

// TestEntriesSlow: where the entries of maps, whose number is exact, come clearly slower after the first of two
// listings, samples that grow evenly by chance make no leak. So many that it is no chance are of other objects.
func TestEntriesSlow(t *testing.T) {
	slower := func(t float64) float64 { return (1 - math.Exp(-t/25)) / (1 - math.Exp(-60/25.0)) }
	for name, c := range map[string]struct {
		entries func(t float64) float64 // share of all
		per     float64                 // samples a second
		kind    string
	}{
		"evenly":                         {func(t float64) float64 { return t / 60 }, 0.5, KindLeak},
		"ever more slowly":               {slower, 0.5, ""},
		"ever more slowly, many samples": {slower, 8, KindLeak},
		"of other objects":               {func(t float64) float64 { return 20 * slower(t) }, 0.5, KindLeak},
	} {
		r, h := world(births(1, c.per, forever), every(nil, []float64{30, 50}))
		s := h.series(1)
		for _, x := range h.Times {
			n := [families]uint64{hashMaps: uint64(s.Objects * c.entries(x))}
			h.tables.nodes = append(h.tables.nodes, n)
		}
		l, kind := h.Report(&r.Cursor), ""
		if len(l.Verdicts) > 0 {
			kind = l.Verdicts[0].Kind
		}
		if kind != c.kind {
			t.Errorf("%s: %+v, %+v; want %s", name, l.Verdicts, l.Misses, c.kind)
		}
	}
}
