package agent

import (
	"testing"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestHostileRingIsLeftAlone: a ring that breaks the protocol is no longer read, and another JVM is recorded on.
func TestHostileRingIsLeftAlone(t *testing.T) {
	mem := &sessiontest.MemStore{Limit: 1 << 30}
	r := newRig(t, mem)
	bad, err := ringtest.Create(r.dir, ringtest.Config{PID: 1 << 21})
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	good, err := ringtest.Create(r.dir, ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	m := tracetest.New(tracetest.Config{Seed: 3})
	r.play(good, m, 2)
	bad.Poke64(shmring.OffHead, 3)
	bad.Truncate(100)
	r.play(good, m, 2)
	good.End(shmring.StateGoodbye, "")
	wait(t, func() bool {
		for _, s := range r.a.Status() {
			if s.Phase == session.EndedPhase && s.Collections == 4 {
				return true
			}
		}
		return false
	})
}
