package agent

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/heapcam/heapcam/agent/api/apitest"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestForged: a ring that names the process of another user is not recorded, and keeps nobody from being recorded.
func TestForged(t *testing.T) {
	apitest.NeedRoot(t)
	r := newRig(t, &sessiontest.MemStore{Limit: 1 << 30})
	victim := uint32(os.Getpid())
	forged := r.ownedRing(61001, victim)
	why := func(path string) error {
		r.a.mu.Lock()
		defer r.a.mu.Unlock()
		if e := r.a.sessions[path]; e != nil {
			return e.bad
		}
		return nil
	}
	wait(t, func() bool { return why(forged.Path) != nil }, r.a)
	var bad *ForgedError
	if err := why(forged.Path); !errors.As(err, &bad) || bad.Owner != 61001 || bad.UID != 0 || bad.PID != int(victim) {
		t.Errorf("forged: %v", err)
	}
	p, err := ringtest.Create(r.dir, ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	wait(t, func() bool { st := r.a.Status(); return len(st) == 1 && st[0].PID == int(victim) && st[0].UID == 0 }, r.a)

	// One that names the process, but another namespace, so that none is found, and never stops to send: nobody takes
	// that process for recorded.
	ticks, _ := jvms.StartTicks(int(victim))
	unseen := filepath.Join(r.dir, "unseen")
	if err := errors.Join(os.Mkdir(unseen, 0o700), os.Chown(unseen, 61001, 61001)); err != nil {
		t.Fatal(err)
	}
	liar, err := ringtest.Create(unseen, ringtest.Config{PID: victim, StartTicks: ticks, PIDNS: 1, Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer liar.Close()
	if err := errors.Join(os.Chown(liar.Path, 61001, 61001), p.End(shmring.StateGoodbye, "")); err != nil {
		t.Fatal(err)
	}
	r.play(liar, tracetest.New(tracetest.Config{Seed: 1}), 1)
	r.a.Watch(unseen)
	wait(t, func() bool {
		r.play(liar, tracetest.New(tracetest.Config{Seed: 1}), 1)
		for _, st := range r.a.Status() {
			if st.UID == 61001 {
				if st.Of(int(victim), ticks, -1) {
					t.Errorf("a ring of uid 61001 passes for that of process %d", victim)
				}
				return true
			}
		}
		return false
	}, r.a)
	if uid, of := 61001, (&session.Status{PID: 7, StartTicks: 7, UID: 61001}); of.Of(7, 7, 0) || !of.Of(7, 7, uid) ||
		of.Of(7, 8, uid) {
		t.Errorf("Of: another user's ring, or another start")
	}

	// A hard link to another's ring in one's own folder.
	p, err = ringtest.Create(r.dir, ringtest.Config{PID: other(t, 61001), Beats: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	dir := filepath.Join(r.dir, "links")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 61001, 61001),
		os.Link(p.Path, filepath.Join(dir, filepath.Base(p.Path)))); err != nil {
		t.Fatal(err)
	}
	r.a.Watch(dir)
	link := filepath.Join(dir, filepath.Base(p.Path))
	wait(t, func() bool { return why(link) != nil }, r.a)
	var owner *shmring.OwnerError
	if err := why(link); !errors.As(err, &owner) {
		t.Errorf("a link to another's ring: %v", err)
	}
}
