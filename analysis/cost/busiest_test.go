package cost

import (
	"testing"

	"pgregory.net/rapid"
)

// TestBusiest holds the busiest stretch of random stops against all stretches that end with one.
func TestBusiest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r recent
		var all []stop
		now, most := uint64(0), uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "stops") {
			now += uint64(rapid.IntRange(0, 6e9).Draw(t, "later"))
			took := uint64(rapid.IntRange(0, 1e9).Draw(t, "took"))
			r.add(now, took)
			all = append(all, stop{now, took})
			sum := uint64(0)
			for _, s := range all {
				if now-s.at <= Stretch {
					sum += s.took
				}
			}
			most = max(most, sum)
		}
		if r.busiest.Stopped != most {
			t.Fatalf("%d, want %d", r.busiest.Stopped, most)
		}
		sum := uint64(0)
		for _, s := range all {
			if s.at >= r.busiest.From && s.at <= r.busiest.From+Stretch {
				sum += s.took
			}
		}
		if sum < most {
			t.Fatalf("from %d on: %d, want %d", r.busiest.From, sum, most)
		}
	})
}
