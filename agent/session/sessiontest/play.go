package sessiontest

import (
	"testing"
	"time"

	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// Commit writes blocks as a probe does, waiting for room.
func Commit(t *testing.T, p *ringtest.Producer, blocks []trace.Block) {
	t.Helper()
	for i := 0; ; i++ {
		n := 0
		for _, b := range blocks {
			n += b.Size()
		}
		if p.Free() >= uint64(n) {
			if ok, err := p.Commit(blocks...); !ok || err != nil {
				t.Fatal(ok, err)
			}
			_ = p.Beat()
			return
		}
		if i > 5000 {
			t.Fatal("nobody reads the ring")
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// Play lets a model run n epochs into the ring, answering requests for sync points, and returns the epochs.
func Play(t *testing.T, p *ringtest.Producer, m *tracetest.Model, n int) []*tracetest.Epoch {
	t.Helper()
	var eps []*tracetest.Epoch
	for range n {
		behind, err := p.Answer(shmring.OffSyncWanted, shmring.OffSyncDone)
		if err != nil {
			t.Fatal(err)
		}
		ep := m.Step(behind > 0 || len(eps) == 0)
		eps = append(eps, ep)
		Commit(t, p, ep.Blocks)
	}
	return eps
}

// Read says whether all that was committed to the ring has been read.
func Read(p *ringtest.Producer) bool { return p.Peek64(shmring.OffTail) == p.Head() }
