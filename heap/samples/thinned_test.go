package samples

import (
	"math"
	"testing"

	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/trace"
)

// TestThinned takes 40,000 objects of 100 bytes, each of them a sample, and then the same with an interval of 64 KiB.
// Thinned to that, both halves stand for as much, each object is a sample or is not at each look, and what dies goes.
func TestThinned(t *testing.T) {
	const n, size, interval = 40_000, 100, 64 << 10
	x, thin := New(), Thin(interval)
	taken := make([]trace.Sample, n)
	for i := range taken {
		taken[i] = trace.Sample{ID: uint64(i + 1), Size: size}
	}
	x.Begin()
	x.Take(taken, 1, same)
	for i := range taken {
		x.Resolve(uint64(i + 1))
	}
	thin.Follow(x)
	stood := func() (sum float64) {
		for id, s := range thin.Live.All() {
			if s.Interval != interval || x.Live.Get(id) == nil {
				t.Fatalf("sample %d: %+v", id, s)
			}
			sum += s.Weight
		}
		return sum
	}
	first, sigma := stood(), math.Sqrt(n*trace.Weight(size, interval))
	if math.Abs(first-n) > 4*sigma || len(thin.Sampled) != thin.Live.Len() || len(thin.Resolved) != thin.Live.Len() {
		t.Errorf("%d samples stand for %.0f objects of %d", thin.Live.Len(), first, n)
	}
	if share := thin.Share(); math.Abs(share-float64(thin.Live.Len())/n) > 1e-9 {
		t.Errorf("%.4f of the samples were drawn", share)
	}
	x.Begin()
	late := []trace.Sample{{ID: n + 1, Size: size, Interval: interval}, {ID: n + 2, Size: size, Interval: 1 << 20}}
	x.Take(late, 2, same)
	for _, s := range late {
		x.Resolve(s.ID)
	}
	dead := 0
	for id := range thin.Live.All() {
		x.Die(id)
		dead++
		if dead == 10 {
			break
		}
	}
	before := thin.Live.Len()
	thin.Follow(x)
	if thin.Live.Len() != before-10+2 || len(thin.Died) != 10 || thin.Live.Get(n+1) != x.Live.Get(n+1) {
		t.Errorf("%d samples after %d; %d died", thin.Live.Len(), before, len(thin.Died))
	}
}

// TestWidest: what may be missing is what the longest interval would have let pass, unless a sample is of that time.
func TestWidest(t *testing.T) {
	var n Intervals
	for range 100 {
		n.Add(16 << 10)
	}
	if got := n.Widest().Missed(1<<10, 16<<10); got != 0 {
		t.Errorf("one interval: %.0f objects may be missing", got)
	}
	for range 2 {
		n.Add(512 << 10)
	}
	w := n.Widest()
	if got, want := w.Missed(1<<10, 16<<10), 2*trace.Weight(1<<10, 512<<10); got != want {
		t.Errorf("of two samples %.0f objects may be missing, want %.0f", got, want)
	}
	if w.Missed(1<<10, 512<<10) != 0 || w.Missed(1<<10, 0) >= 0 {
		t.Error("a sample of the longest interval misses something, or one of all objects says something")
	}
	for range 100 {
		n.Add(512 << 10)
	}
	if got, want := n.Widest().Missed(1<<10, 16<<10), stats.NoneDrawn*trace.Weight(1<<10, 512<<10); got != want {
		t.Errorf("%.0f objects may be missing, want %.0f", got, want)
	}
}
