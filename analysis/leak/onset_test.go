package leak

import (
	"math"
	"testing"
)

// TestOnset: what began late began then, even if a coarse sample came early, and its rate is that since then.
func TestOnset(t *testing.T) {
	var at, late, steady, early []float64
	for i := range 120 {
		x := float64(i) / 2
		at = append(at, x)
		late = append(late, 512<<10*math.Min(1, math.Floor(x))+math.Max(0, x-30)*400e3)
		steady = append(steady, x*400e3)
		early = append(early, math.Min(x, 10)*4e6+math.Max(0, x-10)*100e3)
	}
	for name, c := range map[string]struct {
		low      []float64
		from, to float64
	}{"late": {late, 28, 31.5}, "steady": {steady, 0, 4}, "early": {early, 0, 2}} {
		if x := onset(at, c.low); x[0] < c.from || x[1] > c.to || x[0] > x[1] {
			t.Errorf("%s began from %v", name, x)
		}
	}
	var objects []object
	for x := 30.0; x < 60; x += 0.125 {
		objects = append(objects, object{1, x, math.Inf(1)})
	}
	r, h := world(objects, every(nil, []float64{45, 58}))
	l := h.Report(&r.Cursor)
	const rate = 8 * 500 * 1000 // bytes a second since 30 s
	if len(l.Verdicts) != 1 || math.Abs(l.Verdicts[0].BytesPerSecond/rate-1) > 0.15 {
		t.Errorf("%+v", l.Verdicts)
	}
}
