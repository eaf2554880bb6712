package quota

import (
	"context"
	"errors"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// Self is what the agent itself uses of its host. Shared rings are apart: each JVM's status has its own.
type Self struct {
	CPU       float64 `json:"cpu"`                  // of one core, over the last seconds
	CPUNS     uint64  `json:"cpu_ns"`               // since it began
	MaxCPU    float64 `json:"max_cpu,omitempty"`    // 0: any
	Memory    int64   `json:"memory_bytes"`         // that its runtime holds
	Live      int64   `json:"live_bytes"`           // of it, in use after its last collection
	MaxMemory int64   `json:"max_memory,omitempty"` // 0: any
}

const (
	// measureEvery is how often the agent measures itself, measureSpan over what time its CPU is averaged.
	measureEvery = time.Second
	measureSpan  = 5 * time.Second
	// cpuSpan is the time over which a recording's CPU is averaged. After two spans above its part its level is
	// lowered.
	cpuSpan = 2 * time.Second
	// leastForJVMs is the share of MaxCPU that recordings have in any case. Finding JVMs, opening, status and pulls
	// come first.
	leastForJVMs = 0.25
	// memoryFull is the share of MaxMemory in use from which no further recording begins, memoryOver the one from which
	// the largest are ended. The runtime needs the rest to collect.
	memoryFull = 0.75
	memoryOver = 0.875
	// opensWith is the memory that a busy recording needs in the end (encoders, blocks, a table of sites), bytes.
	opensWith = 24 << 20
	// OpensFor is how long that takes, and takes to be measured. Until then a recording counts as young: see
	// Process.Full.
	OpensFor = 5 * time.Second
)

// Errors of recordings for which the agent has no memory.
var (
	ErrNoMemory = errors.New("agent_max_memory leaves no room for another recording")
	ErrEvicted  = errors.New("agent_max_memory was reached, and this recording held the most memory")
)

// Process bounds what the agent itself takes.
//
// Memory: Go's collector keeps the limit as far as it can; then no further recording begins; then the recordings
// that hold most are evicted, as if the agent had stopped. Their shared rings keep what they hold and count what
// overflows.
//
// CPU: recordings that take more than their part are compressed faster, then recorded at a lower depth (RateLimit).
//
// All methods are safe for concurrent use.
type Process struct {
	cpu   *SharedRate                    // CPU nanoseconds a second; without meaning while maxCPU is 0
	used  func() (memory, live int64)    // replaced by tests
	clock func() (process time.Duration) // replaced by tests
	spent atomic.Int64                   // CPU nanoseconds of all recordings

	mu            sync.Mutex
	maxCPU        float64
	maxMem        int64
	share         float64 // CPUs of late
	rest          float64 // of it, what no recording took
	at            time.Time
	was, spentWas time.Duration
	mem, live     int64
	over          int // measurements in a row

	memoryLimit int64 // that Go's runtime had before Watch; 0: Watch does not run
}

// NewProcess makes a Process. maxCPU is CPUs, maxMemory bytes; 0: any.
func NewProcess(maxCPU float64, maxMemory int64) *Process {
	return &Process{
		maxCPU: maxCPU, maxMem: maxMemory, used: memoryUsed, clock: processCPU,
		cpu: NewSharedRate("agent_max_cpu", int64(maxCPU*float64(time.Second))),
	}
}

// CPU returns the limit that recordings share, CPU nanoseconds a second.
func (p *Process) CPU() *SharedRate { return p.cpu }

// Charge adds CPU time that recordings took.
func (p *Process) Charge(peak time.Duration) { p.spent.Add(int64(peak)) }

// Measure replaces how memory is measured, bytes held and in use. It is for tests, before anything looks.
func (p *Process) Measure(used func() (memory, live int64)) { p.used = used }

// SetLimits changes both limits.
func (p *Process) SetLimits(maxCPU float64, maxMemory int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if maxMemory != p.maxMem && p.memoryLimit != 0 {
		debug.SetMemoryLimit(memoryLimit(maxMemory, p.memoryLimit))
	}
	p.maxCPU, p.maxMem, p.over = maxCPU, maxMemory, 0
	p.cpu.SetLimit(int64(maxCPU * float64(time.Second)))
}

// memoryLimit returns what Go's runtime is to keep to; was is what it had before anybody said anything.
func memoryLimit(max, was int64) int64 {
	if max == 0 {
		return was
	}
	return min(max, was)
}

// Observe measures at the time now, and says whether more memory is in use than may be, twice in a row.
func (p *Process) Observe(now time.Time) (over bool) {
	cpu, spent := p.clock(), time.Duration(p.spent.Load())
	mem, live := p.used()
	p.mu.Lock()
	defer p.mu.Unlock()
	if dt := now.Sub(p.at); !p.at.IsZero() && dt > 0 {
		w := 1 - math.Exp(-float64(dt)/float64(measureSpan))
		p.share += w * (float64(cpu-p.was)/float64(dt) - p.share)
		p.rest += w * (max(0, float64(cpu-p.was-(spent-p.spentWas))/float64(dt)) - p.rest)
		if p.maxCPU > 0 {
			p.cpu.SetLimit(int64(max(p.maxCPU-p.rest, leastForJVMs*p.maxCPU) * float64(time.Second)))
		}
	}
	p.at, p.was, p.spentWas, p.mem, p.live = now, cpu, spent, mem, live
	if p.maxMem == 0 || float64(live) <= memoryOver*float64(p.maxMem) {
		p.over = 0
		return false
	}
	p.over++
	return p.over > 1
}

// Full says that no further recording may begin. young have begun within OpensFor: what is measured does not
// include them.
func (p *Process) Full(young int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.maxMem > 0 && float64(p.live+opensWith*int64(young+1)) > memoryFull*float64(p.maxMem)
}

// Excess returns how many of n recordings are to be ended, largest first, if each holds the same part: at least one if
// there is one. It then waits for two more measurements before Watch asks again.
func (p *Process) Excess(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = 0
	much := 1 - memoryFull*float64(p.maxMem)/float64(p.live)
	return min(max(int(math.Ceil(much*float64(n))), 1), n)
}

// Status returns what the agent takes, as of the last measurement.
func (p *Process) Status() Self {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Self{
		CPU: p.share, CPUNS: uint64(p.was), MaxCPU: p.maxCPU,
		Memory: p.mem, Live: p.live, MaxMemory: p.maxMem,
	}
}

// Watch measures once a second until ctx is done, and calls over when recordings are to be ended. While it runs, Go's
// runtime keeps to the memory limit.
func (p *Process) Watch(ctx context.Context, over func()) {
	was := debug.SetMemoryLimit(-1)
	p.mu.Lock()
	p.memoryLimit = was
	debug.SetMemoryLimit(memoryLimit(p.maxMem, was))
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.memoryLimit = 0
		debug.SetMemoryLimit(was)
		p.mu.Unlock()
	}()
	t := time.NewTicker(measureEvery)
	defer t.Stop()
	for {
		if p.Observe(time.Now()) {
			over()
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// memoryUsed returns what Go's runtime holds, and what of that was in use after its last collection, bytes.
func memoryUsed() (held, live int64) {
	s := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"},
	}
	metrics.Read(s)
	n := func(i int) int64 {
		if s[i].Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return int64(s[i].Value.Uint64())
	}
	return n(0) - n(1), n(2) + n(3)
}
