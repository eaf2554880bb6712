package quota

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestMaxCPU: JVMs that cost the agent many times what it may take are lowered until it takes no more; those that
// cost little keep what they have, whatever the agent does beside recording, and when the load has gone all is as
// it was asked for.
func TestMaxCPU(t *testing.T) {
	const limit = 0.5
	cost := [maxLevel + 1]float64{0, 0.02, 0.15, 0.4, 0.6, 1} // by level, of what all costs
	type jvm struct {
		r     RateLimit
		busy  float64 // CPUs
		level uint64
		ns    float64
	}
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 1))
		var process time.Duration
		f := NewProcess(limit, 0)
		f.clock, f.used = func() time.Duration { return process }, func() (int64, int64) { return 0, 0 }
		var js []*jvm
		for i := range 12 {
			j := &jvm{r: NewCPULimit(f.CPU(), 0, 0), busy: 0.002 * (1 + r.Float64()), level: maxLevel}
			if i < 3 {
				j.busy = 1 + r.Float64()
			}
			js = append(js, j)
		}
		now := time.Unix(1, 0)
		run := func(seconds int, beside float64) (mean, worst float64) { // worst of ten seconds
			was := process
			from, begun := process, now
			for i := range seconds * 10 {
				now = now.Add(100 * time.Millisecond)
				for _, j := range js {
					peak := 1e8 * j.busy * cost[j.level] * (0.7 + 0.6*r.Float64())
					j.ns += peak
					process += time.Duration(peak * 1.1) // the collector's
					f.Charge(time.Duration(peak))
					if l, change := j.r.Observe(now, int64(j.ns), j.level); change {
						j.level = l
					}
				}
				process += time.Duration(1e8 * beside)
				if i%10 == 9 {
					f.Observe(now)
				}
				if i%100 == 99 {
					worst = max(worst, float64(process-from)/1e10)
					from = process
				}
			}
			return float64(process-was) / float64(now.Sub(begun)), worst
		}
		run(20, 0.01)
		if mean, worst := run(600, 0.01); mean > limit || worst > 1.5*limit {
			t.Errorf("seed %d: the agent takes %.2f CPUs, over ten seconds %.2f, may %.2f", seed, mean, worst, limit)
		}
		if s := f.Status(); s.CPU > limit || s.MaxCPU != limit {
			t.Errorf("seed %d: %+v", seed, s)
		}
		run(60, 1) // it has much else to do
		for i, j := range js {
			if i >= 3 && j.level != maxLevel {
				t.Errorf("seed %d: a JVM that costs %.4f CPUs is at level %d", seed, j.busy, j.level)
			}
			if i < 3 && (j.level == maxLevel || j.r.Cause().Key != "agent_max_cpu") {
				t.Errorf("seed %d: a JVM that costs %.1f CPUs is at level %d for %+v", seed, j.busy,
					j.level, j.r.Cause())
			}
			if i < 3 {
				j.busy = 0.002
			}
		}
		run(5000, 0.01)
		for i, j := range js {
			if j.level != maxLevel {
				t.Errorf("seed %d: without load JVM %d stays at level %d", seed, i, j.level)
			}
		}
	}
}

// TestMemoryUsed: the runtime holds some memory, and less of it is in use.
func TestMemoryUsed(t *testing.T) {
	if held, live := memoryUsed(); held < 1<<20 || live < 1<<10 || live > held {
		t.Errorf("memory: %d, %d", held, live)
	}
}

// TestEnoughRecordingsAreEvicted: new recordings are charged for the memory that they will need. When memory is far
// above the limit, enough recordings are evicted at once.
func TestEnoughRecordingsAreEvicted(t *testing.T) {
	p := NewProcess(0, 96<<20)
	live := int64(4 << 20)
	p.Measure(func() (int64, int64) { return live, live })
	p.Observe(time.Now())
	for young, want := range map[int]bool{0: false, 1: false, 2: true} {
		if p.Full(young) != want {
			t.Errorf("beside %d that have just begun there is room: %v", young, want)
		}
	}
	live = 288 << 20 // what they hold; three quarters of the bound are a quarter of it
	p.Observe(time.Now())
	for n, want := range map[int]int{8: 6, 1: 1, 0: 0} {
		if got := p.Excess(n); got != want {
			t.Errorf("of %d recordings %d are ended, want %d", n, got, want)
		}
	}
}
