package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/faultfs"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestSpooledRingWaits has the disk refuse what the ring of a JVM that has gone holds: nothing of the ring is given up
// until all of it is stored, and the reason is reported.
func TestSpooledRingWaits(t *testing.T) {
	t.Parallel()
	m := faultfs.New(t)
	spool := t.TempDir()
	var log logBuffer
	a, err := New(Config{Out: filepath.Join(m.Dir, "out"), Spool: spool, MaxTraceSize: 8 << 20, Compression: "none",
		Log: zerolog.New(&log)})
	if err != nil {
		t.Fatal(err)
	}
	p, err := ringtest.Create(spool, ringtest.Config{PID: 1, StartTicks: 4711})
	if err != nil {
		t.Fatal(err)
	}
	model, n := tracetest.New(tracetest.Config{Seed: 3, Depth: trace.DepthSurvivors}), 0
	for {
		ok, err := p.Commit(model.Step(n == 0).Blocks...)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		n++
	}
	p.Close()
	writes := 0
	m.Fail(func(op faultfs.Op, name string) syscall.Errno { // in the middle of it
		if op == faultfs.Write && strings.HasSuffix(name, ".hcr") {
			if writes++; writes > 1 {
				return syscall.ENOSPC
			}
		}
		return 0
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	defer func() { m.Fail(nil); cancel(); <-ended }()
	wait(t, func() bool {
		s := a.Spool()
		return len(s.Left) == 1 && strings.Contains(s.Left[0].Reason, "no space")
	}, a)
	r, err := shmring.Open(p.Path, shmring.Options{Away: true})
	if err != nil {
		t.Fatal(err)
	}
	if st, err := r.Status(); err != nil || st.Backlog() == 0 {
		t.Errorf("%d bytes are left in the ring (%v)", st.Backlog(), err)
	}
	r.Close()
	if st := a.Status(); len(st) != 0 {
		t.Errorf("a ring that waits is no recording: %+v", st)
	}
	m.Fail(nil)
	a.mu.Lock()
	a.sessions[p.Path].again = time.Time{} // the minute is over
	a.mu.Unlock()
	wait(t, func() bool { _, err := os.Lstat(p.Path); return errors.Is(err, os.ErrNotExist) }, a)
	wait(t, func() bool { st := a.Status(); return len(st) == 1 && st[0].Phase == session.KilledPhase }, a)
	st := a.Status()[0]
	if !st.Spool || st.PID != 1 || len(a.Spool().Left) != 0 {
		t.Errorf("%+v", st)
	}
	rec, err := ringstore.OpenRecording(st.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	got := map[uint64]int{}
	for _, f := range rec.Files {
		for b, err := range f.Blocks() {
			if err != nil {
				t.Fatal(err)
			}
			if e, err := trace.DecodeEpoch(b); b.Kind == trace.KindEpoch && err == nil {
				got[e.Pause.GC]++
			}
		}
	}
	if len(got) != n {
		t.Errorf("%d collections are stored, %d were in the ring", len(got), n)
	}
	for gc, times := range got {
		if times != 1 {
			t.Errorf("collection %d is stored %d times", gc, times)
		}
	}
}
