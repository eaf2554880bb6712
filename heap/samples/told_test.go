package samples

import (
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// TestTold: a sample whose site the bytecode has told stands for itself until that is lost, and who has looked at it
// before keeps what he has seen. Lives know each time.
func TestTold(t *testing.T) {
	x, lives := New(), &Lives{}
	site := func(frame uint64) uint64 { return frame }
	x.Begin()
	x.Take([]trace.Sample{{ID: 7, Size: 16, Interval: 1 << 20, Frame: 3}}, 1, site)
	if _, ok := x.Resolve(7); !ok {
		t.Fatal("it is not resolved")
	}
	x.Tell(7)
	lives.Follow(x, 1)
	first := x.Live.Get(7)
	if n, interval := first.Stands(); n != 1 || interval != 0 || len(x.Retold) != 0 {
		t.Errorf("it stands for %v at %d, retold %d", n, interval, len(x.Retold))
	}
	for gc := uint64(2); gc < 5; gc++ {
		x.Begin()
		if gc == 3 {
			x.Untell()
		}
		lives.Follow(x, gc)
	}
	if n, _ := first.Stands(); n != 1 {
		t.Errorf("what was seen before has changed: %v", n)
	}
	if n, interval := x.Live.Get(7).Stands(); n < 1000 || interval != 1<<20 {
		t.Errorf("later it stands for %v at %d", n, interval)
	}
	for gc := uint64(1); gc < 5; gc++ {
		if s := lives.SampleAt(7, gc); s == nil || s.Told != (gc < 3) || lives.Live(gc).Get(7) != s {
			t.Errorf("after collection %d it is %+v", gc, s)
		}
	}
	if lives.live != 1 || len(lives.All) != 2 {
		t.Errorf("%d live of %d", lives.live, len(lives.All))
	}
	x.Begin()
	x.Die(7)
	if lives.Follow(x, 5); lives.live != 0 || lives.SampleAt(7, 5) != nil {
		t.Errorf("%d live after its death", lives.live)
	}
}
