package whatif

import (
	"strings"
	"testing"
)

// TestHeadline: the headline does not say that a figure is within 15 % which is not, and a doubt has no effect that it
// could be the cause of where all are.
func TestHeadline(t *testing.T) {
	for _, x := range []struct {
		fits           bool
		off            float64
		want, mustLack string
	}{
		{true, 0.1, "fits this program: it predicts the recorded collections within 15 %", "Cause"},
		{true, -0.74, "in part", "the recorded collections within 15 %"},
		{false, 0.85, "does not fit", "within 15 %"},
	} {
		c := Check{Fits: x.fits, Reasons: []string{"sizes changed"}, Rows: []CheckRow{{What: RowMinor},
			{What: RowLongest, Off: x.off}}}
		var b strings.Builder
		c.headline(&b)
		got := strings.Join(strings.Fields(b.String()), " ")
		if !strings.Contains(got, x.want) || strings.Contains(got, x.mustLack) ||
			x.fits && x.off < 0 && !strings.Contains(got, RowLongest+" (-74 %)") {
			t.Errorf("fits %v, off %v: %s", x.fits, x.off, got)
		}
	}
}
