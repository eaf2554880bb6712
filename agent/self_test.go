package agent

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestMaxMemory: when the agent's memory is nearly used up a further JVM is not recorded, and status says so; when it
// is used up the recording that holds most is let go of, as if the agent had stopped: what its ring holds is recorded
// later, and nothing is lost.
func TestMaxMemory(t *testing.T) {
	t.Parallel()
	const limit = 1 << 40 // of what the test says, not of what Go holds
	var log logBuffer
	var live atomic.Int64
	r := rig{t: t, dir: t.TempDir()}
	a, err := New(Config{Out: filepath.Join(t.TempDir(), "out"), Watch: []string{r.dir}, MaxMemory: limit,
		Log: zerolog.New(&log)})
	if err != nil {
		t.Fatal(err)
	}
	a.self.Measure(func() (int64, int64) { return live.Load(), live.Load() })
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
	of := func(p *ringtest.Producer) (s session.Status) {
		for _, s = range a.Status() {
			if s.Session == p.Session {
				return s
			}
		}
		return session.Status{}
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
	if o := a.Others(); len(o) != 2 || !strings.Contains(log.String(), "recording-evicted") {
		t.Errorf("%+v\n%s", o, log.String())
	}
	live.Store(0)
	a.mu.Lock()
	for _, e := range a.sessions {
		if d := time.Until(e.again); e.evicted > 0 && (d < evictedFor/2 || d > evictedFor) {
			t.Errorf("it is tried again in %v", d)
		}
		e.again = time.Time{}
	}
	a.mu.Unlock()
	wait(t, func() bool {
		return read(x) && of(x).Collections == uint64(nx) && read(y) && of(y).Collections == uint64(ny) &&
			len(a.Others()) == 0
	}, a)
	for _, s := range a.Status() {
		if s.Dropped != (session.Drops{}) {
			t.Errorf("%+v", s)
		}
	}
}

// TestRoom: recordings that have just begun count with what they will hold.
func TestRoom(t *testing.T) {
	a, err := New(Config{Out: t.TempDir(), MaxMemory: 96 << 20})
	if err != nil {
		t.Fatal(err)
	}
	a.self.Measure(func() (int64, int64) { return 4 << 20, 4 << 20 })
	a.self.Observe(time.Now())
	for i := range 2 {
		if err := a.Room(); err != nil {
			t.Error(err)
		}
		a.sessions[strconv.Itoa(i)] = &entry{s: &session.Session{}, began: time.Now()}
	}
	a.sessions["not open"] = &entry{}
	if a.Room() == nil {
		t.Error("a third may begin beside two that have just begun")
	}
}

type held struct {
	bytes   int64
	evicted bool
}

func (h *held) Bytes() int64 { return h.bytes }
func (h *held) Evict()       { h.evicted = true }

// TestEvictLargest: those that hold most are evicted.
func TestEvictLargest(t *testing.T) {
	all := []*held{{bytes: 3}, {bytes: 9}, {bytes: 1}, {bytes: 7}}
	evictLargest(slices.Clone(all), 2)
	for _, h := range all {
		if h.evicted != (h.bytes > 5) {
			t.Errorf("%+v", *h)
		}
	}
}
