package agent

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestIncidents: a JVM that runs out of memory again and again leaves one incident, and one more if it ends without an
// end marker. The log and status report each incident, also one that a user froze.
func TestIncidents(t *testing.T) {
	r := &rig{t: t, dir: t.TempDir()}
	var log logBuffer
	out := filepath.Join(t.TempDir(), "out")
	a, err := New(Config{Out: out, PullOut: out, Watch: []string{r.dir}, MaxTraceSize: 1 << 20, Log: zerolog.New(&log)})
	if err != nil {
		t.Fatal(err)
	}
	r.a = a
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	jvm := exec.Command("sleep", "60")
	if err := jvm.Start(); err != nil {
		t.Fatal(err)
	}
	defer jvm.Wait()
	defer jvm.Process.Kill()
	p, err := ringtest.Create(r.dir,
		ringtest.Config{PID: uint32(jvm.Process.Pid), Beats: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m := tracetest.New(tracetest.Config{Seed: 4})
	status := func() session.Status { return a.Status()[0] }
	logged := func() int { return strings.Count(log.String(), `"id":"incident-frozen"`) }

	for i := range 3 {
		r.play(p, m, 5)
		p.Poke64(shmring.OffExhausted, uint64(i+1))
		r.play(p, m, 5)
		if i == 0 {
			wait(t, func() bool { return len(a.Status()) > 0 && status().Incidents == 1 }, a)
		}
	}
	wait(t, func() bool { return p.Peek64(shmring.OffTail) == p.Head() }, a)
	if st := status(); st.Incidents != 1 || logged() != 1 {
		t.Errorf("%d incidents of one burst; %s", st.Incidents, &log)
	}
	wait(t, func() bool { a.freezing.Lock(); defer a.freezing.Unlock(); return a.frozen != nil })
	in := &ringstore.Incidents{Dir: filepath.Join(out, IncidentsName), Max: 1 << 30}
	if _, err := in.Freeze(status().Dir, ringstore.CauseAsked, "somebody asked"); err != nil {
		t.Fatal(err)
	}
	a.logIncidents()
	if logged() != 2 || !strings.Contains(log.String(), "somebody asked") {
		t.Errorf("the log does not tell of an incident made by hand: %s", &log)
	}
	jvm.Process.Kill()
	jvm.Wait()
	wait(t, func() bool { return status().Phase == session.KilledPhase && logged() == 3 }, a)
	a.logIncidents()
	// The end takes the place of the exhaustion that it came of.
	if n, size := a.Incidents(); n != 2 || size == 0 || logged() != 3 || status().Incidents != 1 {
		t.Errorf("%d incidents, %d bytes; %s", n, size, &log)
	}
	for _, want := range []string{`"cause":"the heap is exhausted`,
		`an allocation failed; the JVM ended without an end marker`,
		"run `heapcam pull --out " + out + " --incident " + status().Incident + " -o FILE`, then"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in %s", want, &log)
		}
	}
}

// TestIncidentsAreQuiet: a JVM that makes storms come and go does not fill the log with incidents that are not made.
func TestIncidentsAreQuiet(t *testing.T) {
	dir := t.TempDir()
	var log logBuffer
	a, err := New(Config{Out: filepath.Join(t.TempDir(), "out"), Watch: []string{dir}, Log: zerolog.New(&log)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	p, err := ringtest.Create(dir, ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	r := &rig{t: t, dir: dir, a: a}
	r.play(p, tracetest.New(tracetest.Config{Seed: 4}), 5)
	var s *session.Session
	wait(t, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, e := range a.sessions {
			s = e.s
		}
		return s != nil && s.Status().Collections > 0
	}, a)
	for range 300 {
		a.freeze(s, ringstore.CauseStorm, "a GC storm begins", ringstore.Listed{})
	}
	if n := strings.Count(log.String(), `"id":"incident-skipped"`); n == 0 || n > 100 {
		t.Errorf("%d lines of incidents that were not made", n)
	}
}
