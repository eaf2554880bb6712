package agent

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// played are what this binary is in processes that tests start.
var played = map[string]func(){}

// The pipes of Windows have one goroutine for as long as the program lives.
func TestMain(m *testing.M) {
	if f := played[os.Getenv("HEAPCAM_TEST_PLAYS")]; f != nil {
		f()
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/Microsoft/go-winio.ioCompletionProcessor"))
}

// logBuffer is a log that a test may read while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logBuffer) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

type rig struct {
	t     *testing.T
	a     *Agent
	mem   *sessiontest.MemStore
	dir   string
	stop  func()
	ended chan struct{}
}

func newRig(t *testing.T, mem *sessiontest.MemStore) *rig {
	dir := t.TempDir()
	rings := filepath.Join(dir, "rings")
	if err := os.Mkdir(rings, 0o700); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, mem: mem, dir: rings}
	r.start(dir)
	return r
}

func (r *rig) start(dir string) {
	a, err := New(Config{Out: filepath.Join(dir, "out"), Watch: []string{r.dir}})
	if err != nil {
		r.t.Fatal(err)
	}
	a.store = func(ringstore.Config, ringstore.Identity, zerolog.Logger) (session.Store, error) {
		return r.mem, nil
	}
	r.a = a
	ctx, cancel := context.WithCancel(context.Background())
	r.ended = make(chan struct{})
	go func() { defer close(r.ended); a.Run(ctx) }()
	var once sync.Once
	ended := r.ended
	r.stop = func() { once.Do(func() { cancel(); <-ended }) }
	r.t.Cleanup(r.stop)
}

func (r *rig) drain() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := r.a.Drain(ctx); err != nil {
		r.t.Fatalf("drain: %v; %+v", err, r.a.Status())
	}
}

// commit writes blocks as a probe does, waiting for room.
func (r *rig) commit(p *ringtest.Producer, blocks []trace.Block) {
	r.t.Helper()
	sessiontest.Commit(r.t, p, blocks)
}

// play lets a model run n epochs into the ring, answering requests for sync points, and returns the epochs.
func (r *rig) play(p *ringtest.Producer, m *tracetest.Model, n int) []*tracetest.Epoch {
	r.t.Helper()
	return sessiontest.Play(r.t, p, m, n)
}

func wait(t *testing.T, f func() bool, tell ...*Agent) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); {
		if time.Now().After(end) {
			for _, a := range tell {
				t.Logf("%+v", a.Status())
			}
			t.Fatal("waited in vain")
		}
		time.Sleep(2 * time.Millisecond)
	}
}
