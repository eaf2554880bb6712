package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestDeadRingsAreRemoved: rings that are quarantined or were never finished are removed once their JVMs have ended,
// and no others.
func TestDeadRingsAreRemoved(t *testing.T) {
	was := deadAfter
	deadAfter = 50 * time.Millisecond
	t.Cleanup(func() { deadAfter = was }) // behind the agent, which reads it
	r := newRig(t, &sessiontest.MemStore{Limit: 1 << 30})
	make := func(c ringtest.Config) *ringtest.Producer {
		p, err := ringtest.Create(r.dir, c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		return p
	}
	gone := make(ringtest.Config{PID: 1<<22 + 1, StartTicks: 1, Starting: true})
	gone.Truncate(6000)
	gone.Ready() // a ring that is no ring any more
	starting := make(ringtest.Config{PID: 1<<22 + 2, StartTicks: 1, Starting: true})
	tooNew := make(ringtest.Config{PID: 1<<22 + 3, StartTicks: 1, ABI: shmring.ABI + 1})
	lives := make(ringtest.Config{Mapped: true})
	r.play(lives, tracetest.New(tracetest.Config{Seed: 1}), 1)
	wait(t, func() bool { return len(r.a.Status()) == 1 }, r.a)
	lives.Poke64(shmring.OffHead, 7) // quarantine
	wait(t, func() bool { st := r.a.Status(); return len(st) == 1 && st[0].Phase == session.Quarantined }, r.a)
	exists := func(p *ringtest.Producer) bool { _, err := os.Lstat(p.Path); return err == nil }
	wait(t, func() bool { r.a.Rescan(); return !exists(gone) && !exists(starting) }, r.a)
	time.Sleep(4 * deadAfter)
	r.a.Rescan()
	time.Sleep(4 * deadAfter)
	if !exists(lives) || !exists(tooNew) {
		t.Errorf("removed: that of a JVM that lives: %v, one that a later heapcam can read: %v", !exists(lives),
			!exists(tooNew))
	}
}

// TestRingTakesOver has a session follow to a larger ring: every collection is stored, once, and the status has the new
// size.
func TestRingTakesOver(t *testing.T) {
	r := newRig(t, &sessiontest.MemStore{Limit: 1 << 30})
	p, err := ringtest.Create(r.dir, ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m := tracetest.New(tracetest.Config{Seed: 1})
	total := uint64(0)
	for _, size := range []uint64{2 << 20, 4 << 20, 8 << 20} {
		r.play(p, m, 3)
		if err := p.Grow(size, true); err != nil {
			t.Fatal(err)
		}
		r.play(p, m, 4)
		total += 7
		wait(t, func() bool {
			st := r.a.Status()
			return len(st) == 1 && st[0].Phase == session.Recording && st[0].Collections == total &&
				st[0].RingBytes == size && st[0].Dropped == session.Drops{}
		}, r.a)
	}
	p.End(shmring.StateGoodbye, "")
	wait(t, func() bool { st := r.a.Status(); return len(st) == 1 && st[0].Phase == session.EndedPhase }, r.a)
	if left, _ := filepath.Glob(filepath.Join(r.dir, "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
