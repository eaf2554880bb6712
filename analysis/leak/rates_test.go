package leak

import (
	"testing"

	"github.com/heapcam/heapcam/heap"
)

// TestUnderestimated demands that a site has its share of what there is of a class beyond what its samples stand for,
// unless the recording began after its JVM.
func TestUnderestimated(t *testing.T) {
	rate := func(more float64, late bool) float64 {
		r, h := world(births(1, 8, forever), every([]float64{20, 30, 40, 50, 58}, nil))
		bytes := 0.0
		for _, s := range r.Live.All() {
			bytes += s.Weight * float64(s.Size)
		}
		h.late, h.early, h.last = late, []heap.Count{{}, {Objects: 1, Bytes: 1000}}, []heap.Count{{},
			{Objects: uint64(more * bytes / 1000), Bytes: uint64(more*bytes) + 1000}}
		l := h.Report(&r.Cursor)
		if len(l.Verdicts) != 1 {
			t.Fatalf("%g: %+v, %+v", more, l.Verdicts, l.Misses)
		}
		v := l.Verdicts[0]
		if v.BytesPerSecond < v.BytesPerSecondLow || v.BytesPerSecond > v.BytesPerSecondHigh {
			t.Errorf("%g: %+v", more, v)
		}
		return v.BytesPerSecond
	}
	as := rate(1, false)
	for more, want := range map[float64]float64{1.25: 1.25, 3: mostLess} {
		if got := rate(more, false) / as; got < 0.98*want || got > 1.02*want {
			t.Errorf("%g times as much: %g times the rate, not %g", more, got, want)
		}
	}
	if got := rate(1.25, true) / as; got > 1.01 {
		t.Errorf("of a recording that began late: %g times the rate", got)
	}
}
