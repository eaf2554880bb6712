package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

// Self is what an agent itself takes of its host, shared rings apart, which each JVM has in its own row.
type Self struct {
	CPU       float64 `json:"cpu"`                  // of one core, over the last seconds
	CPUNS     uint64  `json:"cpu_ns"`               // since it began
	MaxCPU    float64 `json:"max_cpu,omitempty"`    // 0: any
	Memory    int64   `json:"memory_bytes"`         // that its runtime holds
	Live      int64   `json:"live_bytes"`           // of it, in use after its last collection
	MaxMemory int64   `json:"max_memory,omitempty"` // 0: any
}

const (
	// selfEvery is how often the agent looks at itself, selfSpan over what time its CPU is averaged.
	selfEvery = time.Second
	selfSpan  = 5 * time.Second
	// cpuSpan is how long a JVM's CPU is looked at; after two spans above its part a step is taken.
	cpuSpan = 2 * time.Second
	// leastForJVMs is what recordings have of MaxCPU in any case: looking for JVMs, opening, status and pulls come first.
	leastForJVMs = 0.25
	// memoryFull of MaxMemory is in use: no further recording begins. From memoryOver on the largest are let go of. What the runtime needs to collect is the rest.
	memoryFull = 0.75
	memoryOver = 0.875
	// opensWith is what a loud recording comes to hold (encoders, blocks, a table of sites), bytes; opensFor is how long it takes to, and to be seen. A bound that many recordings
	// at once would break is not found out afterwards.
	opensWith = 24 << 20
	opensFor  = 5 * time.Second
	// letGoFor is how long a recording that was let go of waits at least.
	letGoFor = time.Minute
)

var (
	errNoMemory = errors.New("agent_max_memory leaves no room for another recording")
	errLetGo    = errors.New("agent_max_memory is reached, and of all recordings this one held most")
)

// self bounds what the agent itself takes. Its memory: Go's collector keeps the limit as far as it can, then no further recording begins, then those that
// hold most are let go of, as if the agent had stopped: their rings wait and what overflows there is counted. Its CPU: JVMs that take more than their part are
// compressed faster, then recorded at a lower depth (rate.go).
type self struct {
	cpu   *rates                         // ns a second; of no account while maxCPU is 0
	used  func() (memory, live int64)    // for tests
	clock func() (process time.Duration) // for tests
	spent atomic.Int64                   // ns, of all sessions

	mu        sync.Mutex
	maxCPU    float64
	maxMem    int64
	share     float64 // CPUs of late
	rest      float64 // of it, what no session took
	at        time.Time
	was, spun time.Duration
	mem, live int64
	over      int // looks in a row

	memoryLimit int64 // that Go's runtime had before; 0: nobody watches
}

func newSelf(cfg *Config) *self {
	return &self{maxCPU: cfg.MaxCPU, maxMem: cfg.MaxMemory, used: memoryUsed, clock: processCPU,
		cpu: newRates("agent_max_cpu", int64(cfg.MaxCPU*float64(time.Second)))}
}

// look measures. over: memory is used that is above what may be.
func (f *self) look(now time.Time) (over bool) {
	cpu, spent := f.clock(), time.Duration(f.spent.Load())
	mem, live := f.used()
	f.mu.Lock()
	defer f.mu.Unlock()
	if dt := now.Sub(f.at); !f.at.IsZero() && dt > 0 {
		w := 1 - math.Exp(-float64(dt)/float64(selfSpan))
		f.share += w * (float64(cpu-f.was)/float64(dt) - f.share)
		f.rest += w * (max(0, float64(cpu-f.was-(spent-f.spun))/float64(dt)) - f.rest)
		if f.maxCPU > 0 {
			f.cpu.limit(int64(max(f.maxCPU-f.rest, leastForJVMs*f.maxCPU) * float64(time.Second)))
		}
	}
	f.at, f.was, f.spun, f.mem, f.live = now, cpu, spent, mem, live
	if f.maxMem == 0 || float64(live) <= memoryOver*float64(f.maxMem) {
		f.over = 0
		return false
	}
	f.over++
	return f.over > 1
}

// full says that no further recording may begin; young have done so of late, and are not seen in what is used.
func (f *self) full(young int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.maxMem > 0 && float64(f.live+opensWith*int64(young+1)) > memoryFull*float64(f.maxMem)
}

// Room says why no further recording may begin; nil: it may.
func (a *Agent) Room() error {
	young := 0
	a.mu.Lock()
	for _, e := range a.sessions {
		if !e.opening.IsZero() || e.s != nil && time.Since(e.began) < opensFor {
			young++
		}
	}
	a.mu.Unlock()
	if a.self.full(young) {
		return errNoMemory
	}
	return nil
}

func (f *self) status() Self {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Self{CPU: f.share, CPUNS: uint64(f.was), MaxCPU: f.maxCPU, Memory: f.mem, Live: f.live, MaxMemory: f.maxMem}
}

// Self gives what this agent takes.
func (a *Agent) Self() Self { return a.self.status() }

// watchSelf looks at the agent itself until ctx is done.
func (a *Agent) watchSelf(ctx context.Context) {
	was := debug.SetMemoryLimit(-1)
	a.self.mu.Lock()
	a.self.memoryLimit = was
	debug.SetMemoryLimit(memoryLimit(a.self.maxMem, was))
	a.self.mu.Unlock()
	defer func() {
		a.self.mu.Lock()
		a.self.memoryLimit = 0
		debug.SetMemoryLimit(was)
		a.self.mu.Unlock()
	}()
	t := time.NewTicker(selfEvery)
	defer t.Stop()
	for {
		if a.self.look(time.Now()) {
			a.letGo()
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// letGo ends the recordings that hold most of the agent's memory, as many as hold what is too much if each holds the same part; they may begin again when there is room.
func (a *Agent) letGo() {
	a.mu.Lock()
	var all []*session
	for _, e := range a.sessions {
		if e.s != nil && !e.s.letGo.Load() {
			all = append(all, e.s)
		}
	}
	a.mu.Unlock()
	slices.SortFunc(all, func(x, y *session) int { return cmp.Compare(y.holds.Load(), x.holds.Load()) })
	a.self.mu.Lock()
	a.self.over = 0 // what that gives is waited for
	much := 1 - memoryFull*float64(a.self.maxMem)/float64(a.self.live)
	a.self.mu.Unlock()
	for _, s := range all[:min(max(int(math.Ceil(much*float64(len(all)))), 1), len(all))] {
		s.letGo.Store(true)
	}
	a.wg.Go(debug.FreeOSMemory)
}

// memoryUsed gives what Go's runtime holds, and what of that was in use after its last collection, bytes.
func memoryUsed() (held, live int64) {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(s)
	n := func(i int) int64 {
		if s[i].Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return int64(s[i].Value.Uint64())
	}
	return n(0) - n(1), n(2) + n(3)
}

// work does f and charges the session with the CPU time that it took.
func (s *session) work(f func() error) error {
	runtime.LockOSThread() // its clock is the thread's
	defer runtime.UnlockOSThread()
	from := threadCPU()
	err := f()
	took := int64(threadCPU() - from)
	s.cpuNS += took
	s.set(func(st *Status) { st.AgentCPUNS = uint64(s.cpuNS) })
	if s.self != nil {
		s.self.spent.Add(took)
	}
	return err
}

// thrift keeps what the recording takes of the agent's CPU within the part of agent_max_cpu that falls to it.
func (s *session) thrift(h shmring.Status) error {
	s.holds.Store(int64(s.defs.bytes + cap(s.pending) + s.live.bytes()))
	if s.self == nil || s.heeded.MaxCPU == 0 || !s.has {
		return nil
	}
	asked := s.jvm.Depth
	top := asked + easeLevels
	if s.cfg.Compression == "none" {
		top = asked
	}
	if s.cpuRate.shared == nil {
		s.cpuRate = rate{shared: s.self.cpu, span: cpuSpan, asked: top, want: top}
		if was := uint64(h.DepthWanted); was >= trace.DepthSamples && was < asked { // as an earlier agent left it
			s.cpuRate.want, s.cpuDepth = was, was
			s.st.Ease(easeLevels)
		}
	}
	want, change := s.cpuRate.look(time.Now(), s.cpuNS, s.cpuRate.want)
	if !change {
		return nil
	}
	depth, ease := min(want, asked), int(top-max(want, asked))
	text := fmt.Sprintf("depth %s%s: %s leaves it %.2g %% of a core", DepthName(depth), easeNames[ease], s.cpuRate.told.key, 100*float64(s.cpuRate.told.limit)/float64(time.Second))
	s.log.Warn().Msg(text)
	s.st.Ease(ease)
	was := s.cpuDepth
	s.cpuDepth = depth
	if depth == was || was == 0 && depth == asked { // that shows in the size of the window alone
		s.note(text)
		return nil
	}
	s.noteDepth(text)
	return s.setDepth()
}

var easeNames = [easeLevels + 1]string{"", ", compressed fast", ", compressed little"}
