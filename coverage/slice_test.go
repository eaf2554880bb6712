package coverage

import (
	"testing"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestSlices: while listings are spread over pauses and epochs are lost, what is known of the live objects is right.
// It is known unless a collection said nothing of its moves since the last complete listing.
func TestSlices(t *testing.T) {
	all := 0
	for seed := uint64(1); seed <= 12; seed++ {
		m := tracetest.New(tracetest.Config{Seed: seed, Collector: 1 + seed%3, Eden: 1024, Slice: 500,
			Drop: float64(seed%2) * 0.2})
		l := NewLive(m.Types())
		known, sure, lost := 0, false, false
		for i := range 60 {
			e := m.Step(i%9 == 0)
			if e.Dropped {
				l.Lost()
				lost = true
			}
			for _, b := range e.Blocks {
				feed(t, l, b)
				if x, err := trace.DecodeEpoch(b); err == nil {
					sure = sure && x.Pause.Flags&trace.PauseExact != 0 && (!lost || x.Lost.Since != 0)
					lost = false
				}
			}
			sure = sure || e.Synced
			q, ok := l.Figure()
			if ok != (sure && !lost) {
				t.Fatalf("seed %d: collection %d: known %v, should be %v", seed, e.Pause.GC, ok, sure && !lost)
			}
			if !ok {
				continue
			}
			known++
			var truth Count
			for _, o := range e.State {
				truth.add(Count{1, o.Words * 8})
			}
			if sum := q.Live(); sum != truth {
				t.Fatalf("seed %d, collection %d: parts add up to %v, alive are %v", seed, e.Pause.GC, sum, truth)
			}
		}
		all += known
	}
	if all < 150 {
		t.Errorf("known after %d of 720 collections", all)
	}
}
