package session

import (
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestGathers: collections that come one by one are taken many at a time.
func TestGathers(t *testing.T) {
	r := newRigLater(t, &sessiontest.MemStore{Limit: 1 << 30}, &Limits{SamplingShare: -1})
	r.calm = true
	r.start()
	m := tracetest.New(tracetest.Config{Seed: 11, Eden: 1024})
	r.play(m, 1)
	r.drained()
	steps, tail, began := 0, r.p.Peek64(shmring.OffTail), time.Now()
	for range 100 {
		r.play(m, 1)
		time.Sleep(10 * time.Millisecond)
		if now := r.p.Peek64(shmring.OffTail); now != tail {
			steps, tail = steps+1, now
		}
	}
	if took := time.Since(began); steps > 2+int(took/(gatherMost/2)) {
		t.Errorf("%d steps in %s", steps, took)
	}
	r.drained()
}
