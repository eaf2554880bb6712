package governor

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/heapcam/heapcam/trace"
)

// jvm is a JVM whose probe costs a share of wall time by depth, interval and how busy it is.
type jvm struct {
	depth, interval uint64
	probe, sample   float64 // ns
}

func (j *jvm) run(dt time.Duration, busy float64) {
	perDepth := map[uint64]float64{trace.DepthSamples: 0, trace.DepthSurvivors: 0.004, trace.DepthFull: 0.02}[j.depth]
	j.probe += perDepth * busy * float64(dt)
	j.sample += 0.003 * busy * float64(dt) * (512 << 10) / float64(max(j.interval, 512))
}

func TestBudget(t *testing.T) {
	const step = 100 * time.Millisecond
	for _, share := range []float64{0.01, 0.02, 0.05} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 1))
			g := New(Config{Share: share, Depth: trace.DepthFull, Interval: 512 << 10})
			j := &jvm{depth: trace.DepthFull, interval: 512 << 10}
			now := time.Unix(1e9, 0)
			var costs []float64
			busy, over, windows, switches := 0.1, 0, 0, 0
			for i := range 6000 { // ten minutes
				if i%600 == 0 {
					busy = []float64{0.1, 0.5, 1, 5}[r.IntN(4)] // 50 times
				}
				j.run(step, busy)
				now = now.Add(step)
				if c, ok := g.Observe(Observation{Now: now, Probe: uint64(j.probe), Sample: uint64(j.sample),
					Depth: j.depth}); ok {
					if c.Why == "" || c.Depth < trace.DepthSamples || c.Depth > trace.DepthFull ||
						c.Interval < 512<<10 {
						t.Fatalf("%+v", c)
					}
					j.depth, j.interval = c.Depth, c.Interval
					switches++
				}
				costs = append(costs, j.probe+j.sample)
				if n := len(costs); n > 600 {
					windows++
					if costs[n-1]-costs[n-601] > share*float64(time.Minute) {
						over++
					}
				}
			}
			if over > windows/50 {
				t.Errorf("share %v, seed %d: %d of %d minutes cost more than the budget", share, seed, over, windows)
			}
			if switches > 40 {
				t.Errorf("share %v, seed %d: %d switches in ten minutes", share, seed, switches)
			}
			// Calm: it comes back to what was asked for.
			for range 40000 {
				j.run(step, 0.001)
				now = now.Add(step)
				if c, ok := g.Observe(Observation{Now: now, Probe: uint64(j.probe), Sample: uint64(j.sample),
					Depth: j.depth}); ok {
					j.depth, j.interval = c.Depth, c.Interval
				}
			}
			if j.depth != trace.DepthFull || j.interval != 512<<10 {
				t.Errorf("share %v, seed %d: after an hour of calm it is at depth %d, interval %d", share, seed,
					j.depth, j.interval)
			}
		}
	}
}

func TestPause(t *testing.T) {
	g := New(Config{Share: 1, Pause: 10 * time.Millisecond, Depth: trace.DepthFull})
	now := time.Unix(1e9, 0)
	depth, last := uint64(trace.DepthFull), ""
	for range 100 {
		now = now.Add(100 * time.Millisecond)
		pause := map[uint64]time.Duration{trace.DepthFull: 50, trace.DepthSurvivors: 20,
			trace.DepthSamples: 1}[depth] * time.Millisecond
		if c, ok := g.Observe(Observation{Now: now, Pause: pause, Depth: depth}); ok {
			depth, last = c.Depth, c.Why
		}
	}
	if depth != trace.DepthSamples || last != "recording a collection added 20 ms to a pause; overhead_pause is 10 ms" {
		t.Errorf("depth %d: %s", depth, last)
	}
}

// TestExpensiveDepthIsLeftAtOnce: a depth at which one epoch costs more than seconds of the budget is left at once, and
// tried again ever more rarely, if the probe ignores Room and does not tell what walks would take. Sampling that costs
// twenty times its budget is divided by as much at once.
func TestExpensiveDepthIsLeftAtOnce(t *testing.T) {
	const share = 0.01
	g := New(Config{Share: share, Depth: trace.DepthFull, Interval: 16 << 10})
	now, depth, interval := time.Unix(1e9, 0), uint64(trace.DepthFull), uint64(16<<10)
	var probe, sample time.Duration
	ups, epochs := 0, 0
	var cost []time.Duration
	for i := range 3000 { // five minutes, an epoch each second
		now = now.Add(100 * time.Millisecond)
		sample += time.Duration(0.2 * float64(100*time.Millisecond) * float64(16<<10) / float64(interval))
		if i%10 == 0 {
			epochs++
			probe += map[uint64]time.Duration{trace.DepthFull: 200, trace.DepthSurvivors: 100,
				trace.DepthSamples: 0}[depth] * time.Millisecond
		}
		if c, ok := g.Observe(Observation{Now: now, Probe: uint64(probe), Sample: uint64(sample), Depth: depth}); ok {
			if c.Depth > depth {
				ups++
			}
			depth, interval = c.Depth, c.Interval
		}
		cost = append(cost, probe+sample)
		if n := len(cost); n > 700 && cost[n-1]-cost[n-601] > 600*time.Millisecond {
			t.Fatalf("%v: a minute cost %v at depth %d, interval %d", time.Duration(i)*100*time.Millisecond,
				cost[n-1]-cost[n-601], depth, interval)
		}
	}
	if ups > 4 || depth != trace.DepthSamples { // survivors are tried
		t.Errorf("it went up %d times, and is at depth %d", ups, depth)
	}
	if cost[100] > 600*time.Millisecond {
		t.Errorf("the first 10 s cost %v", cost[100])
	}
}

// TestRoom: a load that rises fifty times for 20 s of each minute, one epoch of which may cost as much as seconds of
// the budget. The probe heeds Room, with guesses that are wrong by up to a third, and the governor looks when it can.
// No minute costs more than the budget and a twentieth, and the depth comes back in the calm.
func TestRoom(t *testing.T) {
	const ms = time.Millisecond
	for _, share := range []float64{0.01, 0.02, 0.05} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 3))
			g := New(Config{Share: share, Depth: trace.DepthFull, Interval: 64 << 10})
			wanted, cap, interval, cuts := uint64(trace.DepthFull), uint64(trace.DepthFull), uint64(64<<10), uint64(0)
			var probe, sample, worst, most time.Duration // most: what they may come to
			var costs []time.Duration                    // by 10 ms
			next, look, at := 0, 0, time.Unix(1e9, 0)
			fullAgain := 0
			for i := range 20000 { // 200 s of 10 ms
				now := at.Add(time.Duration(i) * 10 * ms)
				busy := i%6000 >= 4000
				load, every := 0.02, 300
				if busy {
					load, every = 1, 40
				}
				sample += time.Duration(0.005 * load * float64(10*ms) * float64(512<<10) / float64(interval))
				if i >= next {
					next = i + every
					cost := func(d uint64) time.Duration {
						return time.Duration([]float64{0, 0.2, 12 * max(load, 0.05),
							80 * max(load, 0.05)}[d] * float64(ms))
					}
					if wanted <= cap { // it has taken note
						cap = trace.DepthFull
					}
					d := min(wanted, cap)
					for guess := 0.75 + 0.5*r.Float64(); d > trace.DepthSamples &&
						time.Duration(guess*float64(cost(d))) > most-probe-sample; d-- {
						cap = d - 1
						cuts++
					}
					probe += cost(d)
					if d == trace.DepthFull && i > 4000 && !busy {
						fullAgain++
					}
				}
				if i >= look {
					look = i + 10 + r.IntN(20)
					if c, ok := g.Observe(Observation{Now: now, Probe: uint64(probe), Sample: uint64(sample),
						Depth: min(wanted, cap), Cuts: cuts}); ok {
						wanted, interval = c.Depth, c.Interval
					}
					most = probe + sample + g.Room()
				}
				costs = append(costs, probe+sample)
				if n := len(costs); n > 6000 {
					worst = max(worst, costs[n-1]-costs[n-6001])
				}
			}
			if float64(worst) > 1.05*share*float64(time.Minute) {
				t.Errorf("share %v, seed %d: a minute cost %v", share, seed, worst)
			}
			if fullAgain == 0 {
				t.Errorf("share %v, seed %d: it never came back to depth full", share, seed)
			}
		}
	}
}

// TestAnotherAgent: what an agent before lowered goes up again.
func TestAnotherAgent(t *testing.T) {
	g := New(Config{Share: 0.02, Depth: trace.DepthFull, Interval: 512 << 10})
	now, depth := time.Unix(1e9, 0), uint64(trace.DepthSamples)
	for range 1000 {
		now = now.Add(100 * time.Millisecond)
		if c, ok := g.Observe(Observation{Now: now, Depth: depth}); ok {
			depth = c.Depth
		}
	}
	if depth != trace.DepthFull {
		t.Errorf("depth %d", depth)
	}
	if r := g.Room(); r != 1080*time.Millisecond {
		t.Errorf("one epoch may cost %v", r)
	}
}

// played is a JVM with a probe of today: it tells what walks would take, and going up costs a listing.
type played struct {
	g             *Governor
	now           time.Time
	depth         uint64
	probe, sample time.Duration
	walk          [trace.DepthFull + 1]uint64
	listing       time.Duration
	changes, ups  int
	storm         bool
}

func play(share float64, listing time.Duration) *played {
	return &played{g: New(Config{Share: share, Depth: trace.DepthSurvivors, Interval: 512 << 10}),
		now: time.Unix(1e9, 0), depth: trace.DepthSurvivors, listing: listing}
}

// run plays so many seconds in which walks at depth survivors take so much a second, two epochs a second.
func (p *played) run(seconds int, cost time.Duration) {
	for i := range 10 * seconds {
		p.now = p.now.Add(100 * time.Millisecond)
		if i%5 == 0 {
			p.walk[trace.DepthSurvivors] += uint64(cost / 2)
			p.walk[trace.DepthFull] += uint64(3 * cost)
			if p.depth == trace.DepthSurvivors {
				p.probe += cost / 2
			}
		}
		c, ok := p.g.Observe(Observation{Now: p.now, Probe: uint64(p.probe), Sample: uint64(p.sample), Depth: p.depth,
			Walk: p.walk, Listing: uint64(p.listing), Storm: p.storm})
		if !ok || c.Depth == p.depth {
			continue
		}
		p.changes++
		if c.Depth > p.depth {
			p.ups++
			p.probe += p.listing
		}
		p.depth = c.Depth
	}
}

// TestNoFlapping: a load whose walks take three times the budget for 20 s of each minute does not have its depth raised
// and lowered in turn, each time for a listing of 100 ms.
func TestNoFlapping(t *testing.T) {
	p := play(0.02, 100*time.Millisecond)
	for range 20 {
		p.run(20, 120*time.Millisecond)
		p.run(40, 2*time.Millisecond)
	}
	if p.ups > 2 {
		t.Errorf("the depth was raised %d times in twenty minutes", p.ups)
	}
	// Three times the budget all the time: never.
	p = play(0.02, 100*time.Millisecond)
	p.run(1200, 60*time.Millisecond)
	if p.ups > 0 || p.depth != trace.DepthSamples {
		t.Errorf("the depth was raised %d times, and is %d", p.ups, p.depth)
	}
	// Half of the budget: it stays.
	p = play(0.02, 100*time.Millisecond)
	p.run(1200, 10*time.Millisecond)
	if p.changes > 0 {
		t.Errorf("%d changes", p.changes)
	}
}

// TestIdleComesBack: however often the depth was lowered before, a JVM that has become idle is back at its depth within
// a minute.
func TestIdleComesBack(t *testing.T) {
	p := play(0.02, 100*time.Millisecond)
	for range 10 {
		p.run(30, 120*time.Millisecond)
		p.run(25, 0)
	}
	p.run(30, 120*time.Millisecond)
	if p.depth != trace.DepthSamples {
		t.Fatal("it was not lowered")
	}
	p.run(60, 0)
	if p.depth != trace.DepthSurvivors {
		t.Errorf("depth %d after a minute without collections", p.depth)
	}
}

// TestStorm: in a storm the probe keeps a budget of its own: its depth is that of the objects, and what it takes is not
// counted afterwards.
func TestStorm(t *testing.T) {
	p := play(0.02, 0)
	p.run(30, 120*time.Millisecond)
	if p.depth != trace.DepthSamples {
		t.Fatal("it was not lowered")
	}
	p.storm = true
	p.run(30, 50*time.Millisecond)
	if p.depth != trace.DepthSurvivors {
		t.Errorf("depth %d in a storm", p.depth)
	}
	p.storm = false
	p.run(30, time.Millisecond)
	if p.depth != trace.DepthSurvivors || p.changes != 2 {
		t.Errorf("depth %d after the storm, %d changes", p.depth, p.changes)
	}
}

// TestOneLongEpoch: one epoch that takes long, as on a busy machine, does not lower the depth.
func TestOneLongEpoch(t *testing.T) {
	p := play(0.02, 0)
	for range 3 {
		p.run(30, time.Millisecond)
		p.probe += 196 * time.Millisecond
		p.run(30, time.Millisecond)
	}
	if p.changes != 0 {
		t.Errorf("%d changes, depth %d", p.changes, p.depth)
	}
	for range 4 {
		p.probe += 196 * time.Millisecond
		p.run(1, 0)
	}
	if p.depth != trace.DepthSamples {
		t.Errorf("depth %d after four of them within 4 s", p.depth)
	}
}
