package agent

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestMaxCPU: JVMs that cost the agent many times what it may take are lowered until it takes no more; those that cost little keep what they have, whatever
// the agent does beside recording, and when the load has gone all is as it was asked for.
func TestMaxCPU(t *testing.T) {
	const limit = 0.5
	cost := [maxLevel + 1]float64{0, 0.02, 0.15, 0.4, 0.6, 1} // by level, of what all costs
	type jvm struct {
		r     rate
		busy  float64 // CPUs
		level uint64
		ns    float64
	}
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 1))
		var process time.Duration
		f := newSelf(&Config{MaxCPU: limit})
		f.clock, f.used = func() time.Duration { return process }, func() (int64, int64) { return 0, 0 }
		var js []*jvm
		for i := range 12 {
			j := &jvm{r: rate{shared: f.cpu, span: cpuSpan}, busy: 0.002 * (1 + r.Float64()), level: maxLevel}
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
					took := 1e8 * j.busy * cost[j.level] * (0.7 + 0.6*r.Float64())
					j.ns += took
					process += time.Duration(took * 1.1) // the collector's
					f.spent.Add(int64(took))
					if l, change := j.r.look(now, int64(j.ns), j.level); change {
						j.level = l
					}
				}
				process += time.Duration(1e8 * beside)
				if i%10 == 9 {
					f.look(now)
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
		if s := f.status(); s.CPU > limit || s.MaxCPU != limit {
			t.Errorf("seed %d: %+v", seed, s)
		}
		run(60, 1) // it has much else to do
		for i, j := range js {
			if i >= 3 && j.level != maxLevel {
				t.Errorf("seed %d: a JVM that costs %.4f CPUs is at level %d", seed, j.busy, j.level)
			}
			if i < 3 && (j.level == maxLevel || j.r.told.key != "agent_max_cpu") {
				t.Errorf("seed %d: a JVM that costs %.1f CPUs is at level %d for %+v", seed, j.busy, j.level, j.r.told)
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

// TestMaxMemory: when the agent's memory is nearly used up a further JVM is not recorded, and status says so; when it is used up the recording that holds
// most is let go of, as if the agent had stopped: what its ring holds is recorded later, and nothing is lost.
func TestMaxMemory(t *testing.T) {
	t.Parallel()
	const limit = 1 << 40 // of what the test says, not of what Go holds
	var log logBuffer
	var live atomic.Int64
	r := rig{t: t, dir: t.TempDir()}
	a, err := New(Config{Out: filepath.Join(t.TempDir(), "out"), Watch: []string{r.dir}, MaxMemory: limit, Log: zerolog.New(&log)})
	if err != nil {
		t.Fatal(err)
	}
	a.self.used = func() (int64, int64) { return live.Load(), live.Load() }
	r.a = a
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	jvms := 0
	begin := func(depth uint64) (*ringtest.Producer, *tracetest.Model) {
		jvms++
		p, err := ringtest.Create(r.dir, ringtest.Config{Mapped: true, Name: shmring.FileName(uint32(jvms), 7)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		return p, tracetest.New(tracetest.Config{Seed: uint64(jvms), Depth: depth})
	}
	of := func(p *ringtest.Producer) (s Status) {
		for _, s = range a.Status() {
			if s.Session == p.Session {
				return s
			}
		}
		return Status{}
	}
	read := func(p *ringtest.Producer) bool { return p.Peek64(shmring.OffTail) == p.Head() }
	x, mx := begin(trace.DepthSurvivors)
	nx := len(r.play(x, mx, 5))
	wait(t, func() bool { return read(x) && of(x).AgentBytes > 0 && of(x).AgentCPUNS > 0 }, a)
	live.Store(limit * 8 / 10)
	wait(t, func() bool { return a.Room() != nil }, a)
	y, my := begin(trace.DepthSurvivors)
	ny := len(r.play(y, my, 5))
	wait(t, func() bool {
		o := a.Others()
		return len(o) == 1 && strings.Contains(o[0].Reason, "agent_max_memory") && o[0].Why == "agent memory"
	}, a)
	nx += len(r.play(x, mx, 3))
	wait(t, func() bool { return read(x) && of(x).Collections == uint64(nx) }, a)
	live.Store(limit)
	wait(t, func() bool { return of(x).Session == "" }, a)
	nx += len(r.play(x, mx, 3))
	if o := a.Others(); len(o) != 2 || !strings.Contains(log.String(), errLetGo.Error()) {
		t.Errorf("%+v\n%s", o, log.String())
	}
	live.Store(0)
	a.mu.Lock()
	for _, e := range a.sessions {
		if d := time.Until(e.again); e.letGo > 0 && (d < letGoFor/2 || d > letGoFor) {
			t.Errorf("it is tried again in %v", d)
		}
		e.again = time.Time{}
	}
	a.mu.Unlock()
	wait(t, func() bool {
		return read(x) && of(x).Collections == uint64(nx) && read(y) && of(y).Collections == uint64(ny) && len(a.Others()) == 0
	}, a)
	for _, s := range a.Status() {
		if s.Dropped != (Drops{}) {
			t.Errorf("%+v", s)
		}
	}
}

// TestOwnCPU: what a session does is charged to it, by the thread's clock where there is one.
func TestOwnCPU(t *testing.T) {
	f := newSelf(&Config{})
	s := &session{self: f}
	before := processCPU()
	if err := s.work(func() error {
		for threadCPU(); processCPU()-before < 20*time.Millisecond; {
		}
		return nil
	}); err != nil || s.cpuNS <= 0 || f.spent.Load() != s.cpuNS {
		t.Errorf("%v: %d, %d", err, s.cpuNS, f.spent.Load())
	}
	if held, live := memoryUsed(); held < 1<<20 || live < 1<<10 || live > held {
		t.Errorf("memory: %d, %d", held, live)
	}
}

// TestRoom: recordings that have just begun count with what they will hold, and of recordings that hold far too much as many go at once as it takes.
func TestRoom(t *testing.T) {
	a, err := New(Config{Out: t.TempDir(), MaxMemory: 96 << 20})
	if err != nil {
		t.Fatal(err)
	}
	a.self.live = 4 << 20
	begin := func(ago time.Duration, holds int64) *session {
		s := &session{}
		s.holds.Store(holds)
		a.sessions[strconv.Itoa(len(a.sessions))] = &entry{s: s, began: time.Now().Add(-ago)}
		return s
	}
	for range 2 {
		if err := a.Room(); err != nil {
			t.Error(err)
		}
		begin(0, 1)
	}
	a.sessions["not open"] = &entry{}
	if a.Room() == nil {
		t.Error("a third may begin beside two that have just begun")
	}
	clear(a.sessions)
	a.self.live = 288 << 20 // what they hold; three quarters of the bound are a quarter of it
	var all []*session
	for i := range 8 {
		all = append(all, begin(time.Hour, int64(1+i)))
	}
	a.letGo()
	a.wg.Wait()
	for i, s := range all {
		if want := i >= 2; s.letGo.Load() != want {
			t.Errorf("recording %d is let go of: %v", i, !want)
		}
	}
}
