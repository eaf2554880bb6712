package samples

import (
	"testing"

	"github.com/heapcam/heapcam/trace"
)

func same(frame uint64) uint64 { return frame }

// TestLifeOfSamples takes three samples: one survives and dies later, one dies in eden, one is still pending. Lives say
// after which collections each of them lived.
func TestLifeOfSamples(t *testing.T) {
	x, lives := New(), &Lives{}
	x.Begin()
	taken := []trace.Sample{{ID: 7, Size: 16, Frame: 10}, {ID: 5, Size: 24}}
	x.Take(taken, 1, func(frame uint64) uint64 { return frame / 10 })
	if x.Sampled[0].Frame != 1 {
		t.Errorf("the frame of sample 7 is %d, its stack's is 1", x.Sampled[0].Frame)
	}
	if birth, ok := x.Resolve(7); !ok || birth != 1 {
		t.Errorf("sample 7 is born at %d, %v", birth, ok)
	}
	if _, ok := x.Resolve(9); ok {
		t.Error("sample 9 was never taken")
	}
	x.EmptyEden(true)
	lives.Follow(x, 1)
	if _, ok := x.Resolve(5); ok || x.Live.Len() != 1 || x.LiveBytes != 16 ||
		len(x.Sampled) != 2 || len(x.Resolved) != 1 {
		t.Errorf("sample 5 died in eden: %+v", x)
	}
	x.Begin()
	x.Take([]trace.Sample{{ID: 8, Size: 16}}, 2, same)
	x.Skip(2, 4) // collections 2 and 3 were lost
	x.Die(7)
	x.Die(7)
	lives.Follow(x, 4)
	if birth, _ := x.Resolve(8); birth != 4 || len(x.Died) != 1 || x.Live.Len() != 1 ||
		x.LiveBytes != 16 || x.Taken != 3 {
		t.Errorf("born at %d, %+v", birth, x)
	}
	for gc, want := range map[uint64]bool{0: false, 1: true, 3: true, 4: false} {
		if live := lives.Live(gc).Get(7) != nil; live != want || (lives.SampleAt(7, gc) != nil) != want {
			t.Errorf("after collection %d sample 7 lives: %v, want %v", gc, live, want)
		}
	}
}

// TestUnresolved: an epoch that was written while the ring was taken does not say which samples survived. The next one
// says it of both phases.
func TestUnresolved(t *testing.T) {
	x := New()
	x.Take([]trace.Sample{{ID: 1, Size: 16, Time: 5}, {ID: 2, Size: 16}}, 1, same)
	x.EmptyEden(false)
	x.Begin()
	x.Take([]trace.Sample{{ID: 3, Size: 24}}, 2, same)
	for id, birth := range map[uint64]uint64{1: 1, 3: 2} {
		if got, ok := x.Resolve(id); !ok || got != birth {
			t.Errorf("sample %d is born at %d, %v", id, got, ok)
		}
	}
	x.EmptyEden(true)
	if _, ok := x.Resolve(2); ok || x.Live.Len() != 2 || x.Live.Get(1).Time != 5 {
		t.Errorf("%+v", x)
	}
	for range 3 * maxUnresolved {
		x.Take([]trace.Sample{{ID: 9, Size: 16}}, 3, same)
	}
	if x.EmptyEden(false); len(x.pending.all) != maxUnresolved {
		t.Errorf("%d samples of earlier phases are kept", len(x.pending.all))
	}
}

// TestAdopt gives a tracker the live samples of a sync point: a known one stays, an unknown one is new, one without an
// object waits, and what is not reported has died.
func TestAdopt(t *testing.T) {
	x := New()
	x.Take([]trace.Sample{{ID: 1, Size: 16}, {ID: 2, Size: 16}}, 1, same)
	x.Resolve(1)
	x.Resolve(2)
	x.Begin()
	known := x.Live.Get(1)
	reported := []trace.LiveSample{{ID: 1, Birth: 3, Addr: 8}, {ID: 4, Size: 40, Addr: 16}, {ID: 6, Addr: 24}}
	x.Adopt(reported, same, func(l *trace.LiveSample, _ *Sample) bool { return l.Addr < 24 })
	if x.Live.Get(1) != known || known.Birth != 3 || x.Live.Get(4) == nil || x.Live.Get(6) != nil || x.Live.Len() != 2 {
		t.Errorf("live are %v", x.Live)
	}
	if len(x.Died) != 1 || x.Died[0].ID != 2 || len(x.Resolved) != 1 || x.Resolved[0].ID != 4 || x.LiveBytes != 56 {
		t.Errorf("%+v", x)
	}
	if _, ok := x.Resolve(6); !ok {
		t.Error("sample 6 does not wait for its object")
	}
}
