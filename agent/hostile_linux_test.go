package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestEndlessStream lets a producer send as much as it can of what costs the agent most, definitions that are never
// used, notes, samples and blocks of kinds that nobody knows: disk and memory stay within their bounds, and another JVM
// loses nothing meanwhile.
func TestEndlessStream(t *testing.T) {
	dir := t.TempDir()
	rings := filepath.Join(dir, "rings")
	if err := os.Mkdir(rings, 0o700); err != nil {
		t.Fatal(err)
	}
	a, err := New(Config{Out: filepath.Join(dir, "out"), Watch: []string{rings}, MaxTraceSize: 2 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, a: a, dir: rings}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	bad, err := ringtest.Create(rings, ringtest.Config{PID: other(t, 61005), Beats: true})
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	good, err := ringtest.Create(rings, ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	m := tracetest.New(tracetest.Config{Seed: 5})
	r.play(bad, tracetest.New(tracetest.All(6, trace.CollectorSerial, trace.DepthSurvivors)), 1) // introduces itself
	goods, most, sent, id := 0, int64(0), 0, uint64(1<<20)
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		var d trace.Defs
		for range 500 {
			id++
			d.Threads = append(d.Threads, trace.Thread{ID: id, Name: strings.Repeat("x", 200)})
			d.Types = append(d.Types, trace.Type{ID: id, Size: 16, Name: fmt.Sprintf("Type%d", id)})
		}
		blocks := []trace.Block{
			trace.EncodeDefs(d),
			trace.EncodeMeta(trace.Meta{Notes: []trace.Note{{Time: id, Text: strings.Repeat("n", 1000)}}}),
			{Kind: 201, Version: trace.FormatVersion + 1, Payload: make([]byte, 100<<10)},
			{Kind: 200, Version: trace.FormatVersion + 1, Payload: make([]byte, 100<<10)},
		}
		r.commit(bad, blocks)
		sent += 400 << 10
		r.play(good, m, 1)
		goods++
		for _, s := range a.Status() {
			most = max(most, s.TraceBytes)
		}
	}
	r.play(good, m, 1)
	goods++
	good.End(shmring.StateGoodbye, "")
	wait(t, func() bool {
		for _, s := range a.Status() {
			if s.Phase == session.EndedPhase && s.Collections == uint64(goods) && s.Dropped == (session.Drops{}) {
				return true
			}
		}
		return false
	}, a)
	runtime.GC()
	runtime.ReadMemStats(&now)
	grew := int64(now.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d MiB sent, %d bytes on disk at most, %d MiB of memory more", sent>>20, most, grew>>20)
	if limit := int64(2<<20) * 5 / 4; most > limit {
		t.Errorf("%d bytes on disk, the limit is %d", most, limit)
	}
	if sent < 8<<20 {
		t.Errorf("only %d bytes were sent: the test shows nothing", sent)
	}
}

// TestReusedPID: a ring whose pid belongs to another process by now is that of a JVM that has gone, and learns nothing
// of that process.
func TestReusedPID(t *testing.T) {
	r := newRig(t, &sessiontest.MemStore{Limit: 1 << 30})
	// the agent reads once all is there
	p, err := ringtest.Create(r.dir, ringtest.Config{StartTicks: 12345, Starting: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	r.play(p, tracetest.New(tracetest.Config{Seed: 1}), 2)
	if err := p.Ready(); err != nil {
		t.Fatal(err)
	}
	wait(t, func() bool {
		st := r.a.Status()
		return len(st) == 1 && st[0].Phase == session.KilledPhase && st[0].Name == "jvm" && st[0].Collections == 2
	}, r.a)
}
