package agent

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/faultfs"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestHangingDisk makes calls to the disk hang for one JVM's recording, and for the opening of a second JVM's. A third
// recording continues, a fourth JVM that starts meanwhile is recorded, status answers, and the watchdog sees a living
// agent. Everything is reported. Nothing is lost that the shared rings have room for.
func TestHangingDisk(t *testing.T) {
	t.Parallel()
	m := faultfs.New(t)
	var log logBuffer
	r := rig{t: t, dir: t.TempDir()}
	a, err := New(Config{Out: filepath.Join(m.Dir, "out"), Watch: []string{r.dir}, MaxTraceSize: 4 << 20,
		MaxTotal: 64 << 20, SyncInterval: 20 * time.Millisecond, Compression: "none", Log: zerolog.New(&log)})
	if err != nil {
		t.Fatal(err)
	}
	r.a = a
	ctx, cancel := context.WithCancel(context.Background())
	ended, hang := make(chan struct{}), make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	type jvm struct {
		p     *ringtest.Producer
		model *tracetest.Model
		n     int
	}
	jvms := 0
	begin := func() *jvm {
		jvms++
		ticks := ringtest.StartTicks(syscall.Getpid())
		p, err := ringtest.Create(r.dir, ringtest.Config{Mapped: true, Name: shmring.FileName(uint32(jvms), ticks)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		return &jvm{p, tracetest.New(tracetest.Config{Seed: uint64(jvms), Depth: trace.DepthSurvivors}), 0}
	}
	play := func(j *jvm, n int) { j.n += len(r.play(j.p, j.model, n)) }
	read := func(j *jvm) bool { return j.p.Peek64(shmring.OffTail) == j.p.Head() }
	of := func(j *jvm) (s session.Status) {
		for _, s = range a.Status() {
			if s.Session == j.p.Session {
				return s
			}
		}
		return session.Status{}
	}
	x, y := begin(), begin()
	for range 3 {
		play(x, 5)
		play(y, 5)
	}
	wait(t, func() bool { return read(x) && read(y) }, a)
	stuck, goes := filepath.Base(of(x).Dir), filepath.Base(of(y).Dir)
	var late atomic.Bool // the next recording that is opened hangs too
	var opens atomic.Pointer[string]
	m.Fail(func(op faultfs.Op, path string) syscall.Errno {
		dir := filepath.Base(filepath.Dir(path))
		if op == faultfs.Create && dir != stuck && dir != goes && late.CompareAndSwap(true, false) {
			opens.Store(&dir)
		}
		if o := opens.Load(); dir == stuck || o != nil && dir == *o {
			<-hang
		}
		return 0
	})
	release := func() {
		select {
		case <-hang:
		default:
			close(hang)
		}
	}
	defer release() // before the end of Run is waited for
	play(x, 3)
	late.Store(true)
	z := begin()
	play(z, 3)
	wait(t, func() bool { return opens.Load() != nil }, a)
	w := begin()
	play(w, 3)
	for range 5 {
		play(y, 5)
		wait(t, func() bool { return read(y) }, a)
	}
	wait(t, func() bool { return read(w) && of(w).Collections == uint64(w.n) }, a)
	wait(t, func() bool { s := of(x); return s.Stuck() }, a)
	if s := of(y); s.Stuck() {
		t.Errorf("the disk is said to hang for a recording that goes on: %d ns", s.StuckNS)
	}
	wait(t, func() bool {
		l := log.String()
		return strings.Contains(l, "disk-hangs") && strings.Contains(l, errDiskHangs.Error())
	}, a)
	if d := time.Since(a.LastScan()); d > 10*time.Second { // the watchdog waits 20 s
		t.Errorf("the agent's loop came around %v ago: the watchdog would end it", d)
	}
	// Who blames heapcam can stop it all the same.
	for _, step := range []struct {
		do   func(string) (int, error)
		want uint32
	}{{a.Pause, shmring.PauseAsked}, {a.Resume, 0}} {
		if n, err := step.do(""); n != 3 || err != nil { // z has no recording yet
			t.Errorf("%d JVMs were asked: %v", n, err)
		}
		if got := x.p.Peek32(shmring.OffPause); got != step.want {
			t.Errorf("the JVM of the recording that hangs gets %d, want %d", got, step.want)
		}
	}
	if read(x) || of(x).Collections == uint64(x.n) {
		t.Error("nothing hung: the test shows nothing")
	}
	wait(t, func() bool {
		o := a.Others()
		return len(o) == 1 && o[0].Why == "disk" && o[0].Reason == errDiskHangs.Error() && o[0].Remedy != ""
	}, a)
	if of(z).Session != "" {
		t.Errorf("what could not be opened is recorded: %+v", of(z))
	}
	release()
	for _, j := range []*jvm{x, y, z, w} {
		wait(t, func() bool { return read(j) && of(j).Collections == uint64(j.n) }, a)
		if s := of(j); s.StoreError != "" || s.Stuck() || s.Dropped != (session.Drops{}) {
			t.Errorf("%+v", s)
		}
	}
	wait(t, func() bool { return strings.Contains(log.String(), "the disk answers again") }, a)
}

// TestStopHangingDisk: an agent ends in time where the disk hangs for one of its recordings.
func TestStopHangingDisk(t *testing.T) {
	t.Parallel()
	m := faultfs.New(t)
	var log logBuffer
	r := rig{t: t, dir: t.TempDir()}
	a, err := New(Config{Out: filepath.Join(m.Dir, "out"), Watch: []string{r.dir}, Compression: "none",
		Log: zerolog.New(&log)})
	if err != nil {
		t.Fatal(err)
	}
	r.a = a
	p, err := ringtest.Create(r.dir, ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	model := tracetest.New(tracetest.Config{Seed: 1, Depth: trace.DepthSurvivors})
	r.play(p, model, 3)
	wait(t, func() bool { return p.Peek64(shmring.OffTail) == p.Head() }, a)
	hang, hung := make(chan struct{}), make(chan struct{})
	var once sync.Once
	m.Fail(func(op faultfs.Op, _ string) syscall.Errno {
		if op == faultfs.Write {
			once.Do(func() { close(hung) })
			<-hang
		}
		return 0
	})
	r.play(p, model, 3)
	<-hung
	cancel()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("it has not ended within a minute")
	}
	if !strings.Contains(log.String(), "disk-hangs-at-end") {
		t.Error(log.String())
	}
	close(hang)
	a.wg.Wait()
	<-ended
}
