package leak

import (
	"math"
	"testing"
)

// TestRatesOverTime: a leak that begins in the middle of the window grew in its second half. All parts together are its
// growth.
func TestRatesOverTime(t *testing.T) {
	var late []object
	for _, o := range births(1, 40, forever) {
		if o.born > 30 {
			late = append(late, o)
		}
	}
	r, h := world(late, every([]float64{40, 58}, nil))
	l := h.Report(&r.Cursor)
	if len(l.Verdicts) == 0 || len(l.Verdicts[0].Rates) != growthParts {
		t.Fatalf("%+v; %+v", l.Verdicts, l.Misses)
	}
	v := &l.Verdicts[0]
	sum, early := 0.0, 0.0
	for i, x := range v.Rates {
		sum += x / growthParts
		if i < growthParts/2-1 {
			early += x / growthParts
		}
	}
	if whole := float64(v.GrownBytes) / l.Window; math.Abs(sum-whole) > 0.1*whole || early > 0.05*sum {
		t.Errorf("%v: %.0f a second of %.0f", v.Rates, sum, whole)
	}
}
