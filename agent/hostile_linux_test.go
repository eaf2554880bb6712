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

	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestEndlessStream lets a producer send as much as it can of what costs the agent most, definitions that are never used, notes, samples and blocks of
// kinds that nobody knows: disk and memory stay within their bounds, and another JVM loses nothing meanwhile.
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
	bad, err := ringtest.Create(rings, ringtest.Config{PID: other(t, 61005), Name: ""})
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	good, err := ringtest.Create(rings, ringtest.Config{})
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
			{Kind: trace.KindRefs, Version: trace.FormatVersion, Payload: make([]byte, 100<<10)},
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
			if s.Phase == EndedPhase && s.Collections == uint64(goods) && s.Dropped == (Drops{}) {
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

// TestReusedPID: a ring whose pid belongs to another process by now is that of a JVM that has gone, and learns nothing of that process.
func TestReusedPID(t *testing.T) {
	r := newRig(t, &memStore{limit: 1 << 30})
	p, err := ringtest.Create(r.dir, ringtest.Config{StartTicks: 12345, Starting: true}) // the agent reads once all is there
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
		return len(st) == 1 && st[0].Phase == GonePhase && st[0].Name == "jvm" && st[0].Collections == 2
	}, r.a)
}

// TestDefinitionsAreBounded: names of the largest size that the format allows do not fill the agent's memory, nor do ones that come again.
func TestDefinitionsAreBounded(t *testing.T) {
	d := newDefs()
	name := strings.Repeat("n", trace.MaxStr)
	for id := range uint64(2000) {
		if _, err := d.add(trace.EncodeDefs(trace.Defs{Threads: []trace.Thread{{ID: id%1000 + 1, Name: name}}})); err != nil {
			t.Fatal(err)
		}
	}
	held := 0
	for _, th := range d.threads {
		held += len(th.Name)
	}
	if held > maxDefBytes || d.dropped < 1400 {
		t.Errorf("%d bytes are held, %d definitions were dropped", held, d.dropped)
	}
	out, err := d.add(trace.EncodeDefs(trace.Defs{Types: []trace.Type{{ID: 7, Size: 16, Name: name}}}))
	if err != nil || len(out.Types) != 0 || len(d.inFile.types) != 0 {
		t.Errorf("a type that is not kept is written all the same: %d, %v", len(out.Types), err)
	}
}
