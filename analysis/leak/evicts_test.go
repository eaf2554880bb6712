package leak

import (
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
