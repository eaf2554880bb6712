package session

import (
	"math"
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// TestPauses: each pause is in the bucket that its length belongs to; hostile lengths make no bucket more.
func TestPauses(t *testing.T) {
	var p Pauses
	for _, ns := range []uint64{0, 1000, 1001, 1e6, 5e6, 5e6, 1e9, 1024e9, math.MaxUint64} {
		p.add(ns)
	}
	p.paused(&trace.Epoch{HasCycle: true, Pause: trace.Pause{Dur: 9e9}, Stops: []trace.Stop{{Dur: 2e9}, {Dur: 7e9}}})
	c := p.Counts()
	if c.Count != 11 || c.Zero != 2 || c.Buckets[0] != 1 || c.Buckets[8] != 1 {
		t.Errorf("%+v", c)
	}
	n := int64(c.Zero)
	for i, k := range c.Buckets {
		if n += k; i < pauseFirst || i > pauseLast {
			t.Errorf("bucket %d", i)
		}
	}
	if n != int64(c.Count) {
		t.Errorf("%d in buckets of %d", n, c.Count)
	}
	five := int(math.Ceil(math.Log2(0.005) * 8))
	if up, low := math.Exp2(float64(five)/8), math.Exp2(float64(five-1)/8); up < 0.005 || low >= 0.005 ||
		c.Buckets[five] != 2 {
		t.Errorf("5 ms is in %v to %v", low, up)
	}
}
