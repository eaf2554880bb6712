package session

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a session that records a ring into a store in memory.
type rig struct {
	t      *testing.T
	mem    *sessiontest.MemStore
	limits *Limits
	hooks  Hooks
	whose  trace.Resource
	calm   bool // the session gathers what comes, as those that nobody waits for
	p      *ringtest.Producer
	s      *Session
	stop   func()     // ends the session, as an agent that ends does
	ended  chan error // what Run returned
}

func newRig(t *testing.T, mem *sessiontest.MemStore) *rig {
	t.Helper()
	return newRigWith(t, mem, &Limits{SamplingShare: -1})
}

func newRigWith(t *testing.T, mem *sessiontest.MemStore, limits *Limits) *rig {
	t.Helper()
	r := newRigLater(t, mem, limits)
	r.start()
	return r
}

// newRigLater is a rig whose session begins with start.
func newRigLater(t *testing.T, mem *sessiontest.MemStore, limits *Limits) *rig {
	t.Helper()
	p, err := ringtest.Create(t.TempDir(), ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return &rig{t: t, mem: mem, limits: limits, p: p}
}

// start begins a session, or goes on after another one.
func (r *rig) start() {
	r.t.Helper()
	r.open()
	ctx, cancel := context.WithCancel(context.Background())
	s, ended, over := r.s, make(chan error, 1), make(chan struct{})
	go func() {
		defer close(over)
		err := s.Run(ctx, r.hooks)
		s.Close()
		ended <- err
	}()
	r.ended = ended
	r.stop = func() { cancel(); <-over }
	r.t.Cleanup(r.stop)
}

// open makes the session that start runs.
func (r *rig) open() {
	r.t.Helper()
	ring, err := shmring.Open(r.p.Path, shmring.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	if !r.calm {
		ring.Hurry()
	}
	h, err := ring.Status()
	if err != nil {
		r.t.Fatal(err)
	}
	fresh, err := ring.Acquire()
	if err != nil {
		r.t.Fatal(err)
	}
	cfg := Config{
		MaxTraceSize: 1 << 30, Deviation: 0.25, Compression: "none", SyncInterval: time.Second, Emergency: "walk",
		Limits: func() *Limits { return r.limits }, WriteRate: quota.NewSharedRate("max_total_write_rate", 0),
		Process: quota.NewProcess(0, 0), Log: zerolog.Nop(),
	}
	who := JVM{Identity: ringstore.Identity{Session: h.Session, Name: "jvm", Resource: r.whose}, Here: true}
	r.s, err = New(cfg, ring, r.mem, filepath.Join(filepath.Dir(r.p.Path), "out"), h, fresh, who)
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) commit(blocks []trace.Block) {
	r.t.Helper()
	sessiontest.Commit(r.t, r.p, blocks)
}

func (r *rig) play(m *tracetest.Model, n int) []*tracetest.Epoch {
	r.t.Helper()
	return sessiontest.Play(r.t, r.p, m, n)
}

// drained waits until the session has read all that was committed.
func (r *rig) drained() {
	r.t.Helper()
	r.wait(func() bool { return sessiontest.Read(r.p) })
}

// finish waits until the session ends by itself, because the JVM did.
func (r *rig) finish() {
	r.t.Helper()
	select {
	case err := <-r.ended:
		if err != nil {
			r.t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		r.t.Fatalf("the session goes on: %+v", r.s.Status())
	}
}

func (r *rig) wait(f func() bool) {
	r.t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("waited in vain: %+v", r.s.Status())
		}
	}
}
