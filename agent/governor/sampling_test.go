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
				if n, why, ok := s.Observe(now, Spent{Sample: uint64(ns)}, 0, interval); ok {
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
				if n, _, ok := s.Observe(now, Spent{Sample: uint64(ns)}, 0, interval); ok {
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
			if n, _, ok := s.Observe(now, Spent{Sample: uint64(ns)}, uint64(live), interval); ok {
				interval = n
			}
		}
		if live < wanted/2.2 || live > 1.6*wanted {
			t.Errorf("from %d: interval %d, %.0f live samples, want %d", begin, interval, live, wanted)
		}
	}
}

// TestSamplingShortens: an interval below the one that was asked for is taken while there is room, whatever a JVM
// allocates, and is given up for the depth, and for the number of live samples.
func TestSamplingShortens(t *testing.T) {
	const step, least, asked, each = 500 * time.Millisecond, 64 << 10, 512 << 10, 13e-6
	type run struct {
		s        *Sampling
		now      time.Time
		ns       float64
		probe    float64
		interval uint64
		full     bool
	}
	begin := func(total float64) *run {
		return &run{s: NewSampling(SamplingConfig{Interval: asked, Share: 0.01, Least: least, Total: total}),
			now: time.Unix(1e9, 0), interval: asked}
	}
	// steps has the JVM allocate so many bytes a second, and the probe take that share of the time in pauses.
	steps := func(r *run, n int, rate, pauses float64, live uint64) (most float64) {
		for range n {
			cost := float64(step) * rate / float64(r.interval) * each
			r.ns, r.probe, r.now = r.ns+cost, r.probe+float64(step)*pauses, r.now.Add(step)
			most = max(most, cost/float64(step))
			at := live * asked / r.interval
			spent := Spent{Sample: uint64(r.ns), Probe: uint64(r.probe), Full: r.full}
			if k, why, ok := r.s.Observe(r.now, spent, at, r.interval); ok {
				if k < least || why == "" {
					t.Fatalf("interval %d: %q", k, why)
				}
				r.interval = k
			}
		}
		return most
	}
	want := func(what string, r *run, interval uint64) {
		t.Helper()
		if r.interval != interval {
			t.Errorf("%s: interval %d, want %d", what, r.interval, interval)
		}
	}
	r := begin(0.02)
	steps(r, 120, 20e6, 0.002, 100)
	want("20 MB/s", r, least)
	r.full = true
	steps(r, 40, 20e6, 0.002, 100)
	want("the table of sites is full", r, asked)
	steps(r, 240, 20e6, 0.002, 100)
	want("it was full before", r, asked)
	r = begin(0.02)
	steps(r, 120, 20e6, 0.002, 100)
	steps(r, 40, 20e6, 0.019, 100)
	want("pauses need the budget", r, asked)
	r = begin(0.02)
	steps(r, 240, 200e6, 0.002, 100) // at 512 KiB half of the share
	want("200 MB/s", r, asked)
	steps(r, 240, 0, 0, 100) // two minutes of calm after it
	want("calm after 200 MB/s", r, asked)
	r = begin(0)
	steps(r, 120, 20e6, 0.5, 100)
	want("no budget in all", r, least)
	r = begin(0.02)
	steps(r, 120, 20e6, 0.002, 6000)
	want("6,000 live samples", r, asked/2)
	r = begin(0.02)
	steps(r, 120, 1e6, 0, 100)
	want("1 MB/s", r, least)
	before := r.ns
	if most := steps(r, 20, 2e9, 0, 100); most > 0.5 { // a burst of a hundred times what was seen
		t.Errorf("a burst takes %.2f of the time", most)
	}
	if took := (r.ns - before) / 1e9; took > 0.6 {
		t.Errorf("ten seconds of a burst took %.2f s of sampling", took)
	}
	steps(r, 20, 2e9, 0, 100)
	if r.interval <= asked {
		t.Errorf("in a burst the interval is %d", r.interval)
	}
}

// TestSamplingOverflow: an interval at which the probe has no room for many samples is given up for good, once; a few
// that it drops do not matter.
func TestSamplingOverflow(t *testing.T) {
	s := NewSampling(SamplingConfig{})
	now, interval, changes := time.Unix(1e9, 0), uint64(0), 0
	var spent Spent
	for i := range 6000 {
		now = now.Add(100 * time.Millisecond)
		n := uint64(10000)
		if interval > 0 {
			n = 20
		}
		spent.Taken += n
		if i > 1000 && interval == 0 {
			spent.Dropped += n * 9 / 10
		} else if i%50 == 0 {
			spent.Dropped += n / 10
		}
		if to, why, ok := s.Observe(now, spent, 0, interval); ok {
			if interval, changes = to, changes+1; why != "the probe had no room for 9000 samples" || i > 1010 {
				t.Errorf("step %d: %s", i, why)
			}
		}
	}
	if changes != 1 || interval != minInterval {
		t.Errorf("%d changes, interval %d", changes, interval)
	}
}
