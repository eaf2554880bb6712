package history_test

import (
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// TestCutOff demands that a sample from before a window whose begin is gone is there from the first collection on,
// whenever a slice of a sync point names it. One that was allocated in the window is there from its first survival on.
func TestCutOff(t *testing.T) {
	r := heap.NewReplay(&analysistest.Source{})
	r.Types[1] = trace.Type{ID: 1, Name: "shop/Order", Size: 1000}
	h := history.NewTracker(2)
	old := &heap.Sample{Weight: 500, Birth: 90, Sample: trace.Sample{ID: 1, Type: 1, Frame: 1, Size: 1000}}
	fresh := &heap.Sample{Weight: 500, Birth: 103, Sample: trace.Sample{ID: 2, Type: 1, Frame: 2, Size: 1000}}
	for gc := uint64(100); gc < 106; gc++ {
		r.Resolved = nil
		if gc == 103 {
			r.Resolved = []*heap.Sample{old, fresh}
			r.Live.Put(1, old)
			r.Live.Put(2, fresh)
		}
		h.Collection(&r.Cursor, &heap.Collection{Pause: trace.Pause{GC: gc, Kind: trace.PauseYoung,
			Start: gc * 1e9, PhaseStart: gc*1e9 - 1e9}})
	}
	for frame, want := range map[uint64][6]float64{1: {1, 1, 1, 1, 1, 1}, 2: {0, 0, 0, 1, 1, 1}} {
		var bytes, samples [6]float64
		h.Sites[sites.Key{Frame: frame, Class: sites.Class{Name: "shop.Order"}}].Spread(bytes[:], samples[:])
		if samples != want {
			t.Errorf("site %d: %v, want %v", frame, samples, want)
		}
	}
}
