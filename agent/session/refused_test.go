package session

import (
	"testing"

	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

func TestRefusedWritesAreReportedAndRecordingContinues(t *testing.T) {
	mem := &sessiontest.MemStore{Limit: 1 << 30}
	r := newRig(t, mem)
	p := r.p
	m := tracetest.New(tracetest.Config{Seed: 7})
	r.play(m, 5)
	r.drained()
	mem.Refuse(2)
	for range 3 {
		r.play(m, 2)
		r.drained()
	}
	p.End(shmring.StateGoodbye, "")
	r.finish()
	var gap trace.Gap
	synced := false
	for b, err := range trace.Blocks(mem.Files()[0]) {
		if err != nil {
			t.Fatal(err)
		}
		if b.Kind == trace.KindGap {
			gap, _ = trace.DecodeGap(b)
		}
		synced = synced || b.Kind == trace.KindSync && gap.Reason != 0
	}
	st := r.s.Status()
	if gap.Reason != trace.GapStore || gap.Epochs == 0 || gap.Epochs != st.Dropped.StoreEpochs {
		t.Errorf("gap %+v, status %+v", gap, st.Dropped)
	}
	if !synced {
		t.Error("no sync point was asked for after the loss")
	}
	if st.StoreError == "" {
		t.Error("the refusal is not reported")
	}
}

// TestLossIsReportedBeforeTheNextFile: epochs that the open file did not take are reported before the listing that
// begins the next one. Behind it the gap would end what that listing has made known, and a reader of both files would
// compare the listing with a state that is older.
func TestLossIsReportedBeforeTheNextFile(t *testing.T) {
	mem := &sessiontest.MemStore{Limit: 1 << 30}
	r := newRig(t, mem)
	p := r.p
	m := tracetest.New(tracetest.Config{Seed: 11})
	files := func() int { return len(mem.Files()) }
	r.play(m, 2)
	r.drained()
	mem.Fill()
	from := files()
	for i := 0; files() == from; i++ {
		if i == 200 {
			t.Fatal("no file began")
		}
		r.play(m, 2)
		r.drained()
	}
	p.End(shmring.StateGoodbye, "")
	r.finish()
	lost := r.s.Status().Dropped.StoreEpochs
	var reported uint64
	for b, err := range trace.Blocks(mem.Files()[from]) {
		if err != nil {
			t.Fatal(err)
		}
		if b.Kind == trace.KindGap {
			g, _ := trace.DecodeGap(b)
			reported += g.Epochs
		}
		if b.Kind == trace.KindSync {
			break
		}
	}
	if lost == 0 || reported != lost {
		t.Errorf("%d epochs were lost, %d are reported before the listing", lost, reported)
	}
}

// TestRemovedBeginsAgain: a recording whose files somebody has removed waits for a sync point to begin with, but not
// for long: in a storm none comes.
func TestRemovedBeginsAgain(t *testing.T) {
	mem := &sessiontest.MemStore{Limit: 1 << 30}
	r := newRig(t, mem)
	m := tracetest.New(tracetest.Config{Seed: 7})
	r.play(m, 5)
	r.drained()
	mem.Remove()
	lost := 0
	for len(mem.Files()) == 1 && lost < 20 { // no request for a sync point is answered
		sessiontest.Commit(t, r.p, m.Step(false).Blocks)
		r.drained()
		lost++
	}
	if lost > goneMost+2 {
		t.Errorf("a file begins after %d collections", lost)
	}
	sessiontest.Commit(t, r.p, m.Step(false).Blocks)
	r.drained()
	r.play(m, 2)
	r.drained()
	r.p.End(shmring.StateGoodbye, "")
	r.finish()
	kinds := map[trace.Kind]int{}
	for b, err := range trace.Blocks(mem.Files()[1]) {
		if err != nil {
			t.Fatal(err)
		}
		kinds[b.Kind]++
	}
	if kinds[trace.KindEpoch] < 3 || kinds[trace.KindGap] == 0 || kinds[trace.KindSync] == 0 {
		t.Errorf("the new file has %v", kinds)
	}
}

// TestStormBeginsFiles: in a storm without sync points files still begin, once one is a quarter larger than it is to
// be. Else the ring would be one file, which goes as a whole.
func TestStormBeginsFiles(t *testing.T) {
	mem := &sessiontest.MemStore{Limit: 8 << 10, Target: 8 << 10}
	r := newRig(t, mem)
	m := tracetest.New(tracetest.Config{Seed: 5})
	r.play(m, 3)
	r.drained()
	for i := range uint64(200) {
		e := trace.Epoch{Pause: trace.Pause{GC: 100 + i, Kind: trace.PauseFull, Depth: trace.DepthSamples,
			Flags: trace.PauseLeftOut, Start: 1e9 * (100 + i), Dur: 1e6, Cause: "a cause of some length, as they have"}}
		sessiontest.Commit(t, r.p, []trace.Block{trace.EncodeEpoch(&e)})
		if i%5 == 4 {
			r.drained()
		}
	}
	r.p.End(shmring.StateGoodbye, "")
	r.finish()
	files := mem.Files()
	if len(files) < 2 {
		t.Errorf("%d files", len(files))
	}
	for i, f := range files {
		if len(f) > 2*mem.Limit {
			t.Errorf("file %d has %d bytes", i, len(f))
		}
	}
}
