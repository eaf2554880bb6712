package leak

import (
	"testing"

	"github.com/heapcam/heapcam/heap"
)

// TestAliveCounts: of a queue whose consumer is a little too slow few samples live, but each reference listing finds
// more of the class alive, and older ones. Under a load that rises the oldest are as old as before, and in a full cache
// there are not more.
func TestAliveCounts(t *testing.T) {
	listings := []float64{20, 40, 58}
	for name, c := range map[string]struct {
		per  func(t float64) float64 // objects a second
		life func(born float64) float64
		want bool
	}{
		"queue":            {func(float64) float64 { return 200 }, queued(1.11), true},
		"load that rises":  {func(t float64) float64 { return 20 + 5*t }, lives(4), false},
		"full cache":       {func(float64) float64 { return 200 }, lives(6), false},
		"cache that fills": {func(t float64) float64 { return 400 / (1 + t/6) }, forever, false},
	} {
		var all, samples []object
		for at, i := 0.0, 0; at < 60; i++ {
			o := object{1, at, at + c.life(at)}
			if all = append(all, o); i%120 == 7 {
				samples = append(samples, o)
			}
			at += 1 / c.per(at)
		}
		samples = append(samples, births(2, 20, lives(0.1))...) // what else the program does
		r, h := world(samples, every(nil, listings))
		ages := map[uint64]*Ages{}
		for _, at := range listings {
			gc := uint64(at)
			ages[gc] = agesIn(all, 1, at)(gc)
			n := uint64(0)
			for _, o := range all {
				if o.born <= at && o.dies > at {
					n++
				}
			}
			h.listed = append(h.listed, gc)
			h.alive.put(at, []heap.Count{{}, {Objects: n, Bytes: 1000 * n}})
		}
		h.Ages = func(gc uint64) *Ages { return ages[gc] }
		l := h.Report(&r.Cursor)
		if named := len(l.Verdicts) > 0; named != c.want {
			t.Errorf("%s: %+v, %+v", name, l.Verdicts, l.Misses)
		}
	}
}
