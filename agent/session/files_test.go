package session

import (
	"path/filepath"
	"testing"

	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

func TestEveryFileReadsAlone(t *testing.T) {
	for _, c := range []uint64{trace.CollectorSerial, trace.CollectorG1} {
		mem := &sessiontest.MemStore{Limit: 60 << 10}
		r := newRig(t, mem)
		p := r.p
		m := tracetest.New(tracetest.All(uint64(c), c, trace.DepthSurvivors))
		// The model may run ahead of the agent's requests; slow it down so that some are answered.
		var eps []*tracetest.Epoch
		for range 40 {
			eps = append(eps, r.play(m, 3)...)
			r.drained()
		}
		r.commit([]trace.Block{m.End()})
		if err := p.State(shmring.StateGoodbye, ""); err != nil {
			t.Fatal(err)
		}
		p.Close() // Windows removes no file that is open
		r.finish()
		if !mem.Closed() || len(mem.Files()) < 3 {
			t.Fatalf("closed %v, %d files", mem.Closed(), len(mem.Files()))
		}
		if left, _ := shmring.Scan(filepath.Dir(p.Path)); len(left) != 0 {
			t.Errorf("a drained ring was left: %v", left)
		}
		byGC := map[uint64]*tracetest.Epoch{}
		for _, e := range eps {
			if !e.Dropped {
				byGC[e.Pause.GC] = e
			}
		}
		sessiontest.CheckFiles(t, mem.Files(), byGC)
		sessiontest.CheckSummaries(t, mem.Files(), byGC)
		r.stop()
		if st := r.s.Status(); st.Phase != EndedPhase || st.Rotations != uint64(len(mem.Files())-1) {
			t.Errorf("status %+v", st)
		}
	}
}

func TestAnotherAgentContinues(t *testing.T) {
	// several files: what is defined in an older one is used by what waits in the ring
	mem := &sessiontest.MemStore{Limit: 6 << 10}
	r := newRig(t, mem)
	p := r.p
	m := tracetest.New(tracetest.Config{Seed: 9})
	var eps []*tracetest.Epoch
	for range 12 {
		eps = append(eps, r.play(m, 4)...)
		r.drained()
	}
	r.stop()
	eps = append(eps, r.play(m, 4)...) // nobody reads; the ring holds it
	r.start()
	r.wait(func() bool { return p.Peek64(shmring.OffRedefine) > p.Peek64(shmring.OffRedefineDone) })
	r.commit(m.Head())
	p.Answer(shmring.OffRedefine, shmring.OffRedefineDone)
	ep := m.Step(true)
	r.commit(ep.Blocks)
	eps = append(eps, ep)
	eps = append(eps, r.play(m, 5)...)
	p.End(shmring.StateGoodbye, "")
	r.finish()
	byGC := map[uint64]*tracetest.Epoch{}
	for _, e := range eps {
		byGC[e.Pause.GC] = e
	}
	sessiontest.CheckFiles(t, mem.Files(), byGC)
	if st := r.s.Status(); st.Collections != uint64(len(eps)) { // over both agents
		t.Errorf("%d collections are counted of %d", st.Collections, len(eps))
	}
}

// TestRecordingContinuesWithoutListings: if a ring is too small for a listing, recording continues without listings. It
// loses no epoch, begins new files, and reports it.
func TestRecordingContinuesWithoutListings(t *testing.T) {
	mem := &sessiontest.MemStore{Limit: 8 << 10, Small: true}
	r := newRig(t, mem)
	p := r.p
	m := tracetest.New(tracetest.All(1, trace.CollectorSerial, trace.DepthSurvivors))
	epochs := 0
	for range 40 {
		for _, ep := range r.play(m, 3) {
			for _, b := range ep.Blocks {
				if b.Kind == trace.KindEpoch {
					epochs++
				}
			}
		}
		r.drained()
	}
	if err := p.State(shmring.StateGoodbye, ""); err != nil {
		t.Fatal(err)
	}
	r.finish()
	got := 0
	for _, f := range mem.Files() {
		for b, err := range trace.Blocks(f) {
			if err != nil {
				t.Fatal(err)
			}
			switch b.Kind {
			case trace.KindEpoch:
				got++
			case trace.KindSync:
				t.Error("a listing was written")
			case trace.KindGap:
				if g, err := trace.DecodeGap(b); err != nil || g.Reason == trace.GapStore {
					t.Error("a gap was written", g, err)
				}
			}
		}
	}
	st := r.s.Status()
	if len(mem.Files()) < 3 || got != epochs || st.Dropped.StoreEpochs != 0 {
		t.Errorf("%d files, %d of %d epochs; %+v", len(mem.Files()), got, epochs, st)
	}
}
