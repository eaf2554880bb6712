package governor

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestSampling demands that sampling keeps its share of the time, whatever a JVM allocates, and that the interval comes
// back.
func TestSampling(t *testing.T) {
	const step = 500 * time.Millisecond
	for _, share := range []float64{0.005, 0.01, 0.03} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 2))
			s := NewSampling(SamplingConfig{Interval: 512 << 10, Share: share})
			now, ns, interval := time.Unix(1e9, 0), 0.0, uint64(512<<10)
			rate, switches, over, windows := 0.0, 0, 0, 0
			var costs []float64
			for i := range 4800 { // 40 minutes
				if i%240 == 0 {
					rate = []float64{1e7, 1e8, 1e9, 5e9}[r.IntN(4)] // bytes a second
				}
				ns += float64(step) * rate / float64(interval) * 13e-6
				now = now.Add(step)
				if n, why, ok := s.Observe(now, uint64(ns), 0, interval); ok {
					if n < 512<<10 || n&(n-1) != 0 || why == "" {
						t.Fatalf("%d: %s", n, why)
					}
					interval = n
					switches++
				}
				costs = append(costs, ns)
				if i%240 > 30 {
					windows++
					if costs[i]-costs[i-20] > 1.2*share*float64(10*time.Second) {
						over++
					}
				}
			}
			if over > windows/50 || switches > 120 {
				t.Errorf("share %v, seed %d: %d of %d stretches of 10 s cost too much, %d switches", share, seed, over,
					windows, switches)
			}
			for range 8000 {
				now = now.Add(step)
				if n, _, ok := s.Observe(now, uint64(ns), 0, interval); ok {
					interval = n
				}
			}
			if interval != 512<<10 {
				t.Errorf("share %v, seed %d: after an hour of calm the interval is %d", share, seed, interval)
			}
		}
	}
}

// TestSamplingLive demands that the number of live samples comes near to what is wanted, from both sides, as far as the
// share allows it.
func TestSamplingLive(t *testing.T) {
	const wanted, liveBytes = 20000, 4e9
	for _, begin := range []uint64{16 << 10, 512 << 10, 8 << 20} {
		s := NewSampling(SamplingConfig{Interval: begin, Share: 0.02, Live: wanted})
		now, ns, interval := time.Unix(1e9, 0), 0.0, begin
		live := liveBytes / float64(begin)
		for range 8000 {
			ns += 0.5e9 * 1e8 / float64(interval) * 13e-6
			live += 0.02 * (liveBytes/float64(interval) - live) // what lives is replaced
			now = now.Add(500 * time.Millisecond)
			if n, _, ok := s.Observe(now, uint64(ns), uint64(live), interval); ok {
				interval = n
			}
		}
		if live < wanted/2.2 || live > 1.6*wanted {
			t.Errorf("from %d: interval %d, %.0f live samples, want %d", begin, interval, live, wanted)
		}
	}
}
