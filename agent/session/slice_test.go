package session

import (
	"io"
	"testing"

	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/analysis/check"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// blocksOf is a file of a store in memory, to be replayed.
type blocksOf struct{ p []byte }

func (s *blocksOf) Next() (trace.Block, error) {
	if len(s.p) == 0 {
		return trace.Block{}, io.EOF
	}
	b, n, err := trace.ReadBlock(s.p)
	s.p = s.p[n:]
	return b, err
}

// TestSlices records a JVM whose listings are spread over collections: each file begins with a first slice, and alone
// it becomes complete and is right from then on, also through epochs that the shared ring lost.
func TestSlices(t *testing.T) {
	for name, cfg := range map[string]tracetest.Config{
		"parallel": {Seed: 7, Collector: trace.CollectorParallel, Eden: 2048, Slice: 900},
		"g1":       {Seed: 8, Collector: trace.CollectorG1, Eden: 2048, Slice: 900, Remark: 0.1},
		"full":     {Seed: 9, Eden: 2048, Slice: 900, Full: 0.1},
		"lossy":    {Seed: 10, Eden: 2048, Slice: 900, Drop: 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			mem := &sessiontest.MemStore{Limit: 60_000}
			r := newRig(t, mem)
			m := tracetest.New(cfg)
			byGC := map[uint64]*tracetest.Epoch{}
			gc, judged := uint64(0), 0
			for range 60 {
				for _, e := range r.play(m, 4) {
					gc++
					byGC[gc] = e
				}
				r.drained()
				if q := r.s.Status().Quality; q != nil {
					judged++
					if e := byGC[q.GC]; int(q.Objects) != len(e.State) {
						t.Fatalf("collection %d: the status says %d objects, truth %d", q.GC, q.Objects, len(e.State))
					}
				}
			}
			r.commit([]trace.Block{m.End()})
			r.p.End(shmring.StateGoodbye, "")
			r.finish()
			checkSliced(t, mem.Files(), byGC)
			if st := r.s.Status(); st.SyncPoints < 2 || st.Rotations < 2 || judged < 10 {
				t.Errorf("status (known in %d of 60): %+v", judged, st)
			}
		})
	}
}

// checkSliced replays each file alone.
func checkSliced(t *testing.T, files [][]byte, byGC map[uint64]*tracetest.Epoch) {
	t.Helper()
	complete, partial, types := 0, 0, uint64(0)
	for i, f := range files {
		replay, known := heap.NewReplay(&blocksOf{f}), 0
		sums := check.Summaries(replay)
		for {
			c, err := replay.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("file %d: %v", i, err)
			}
			sums.Collection(c)
			if c.Partial {
				partial++
			}
			if !c.Known {
				continue
			}
			known++
			e := byGC[c.GC]
			if int(c.Objects) != len(e.State) {
				t.Fatalf("file %d, collection %d: %d objects, truth %d", i, c.GC, c.Objects, len(e.State))
			}
			replay.State.Each(func(o heap.Object) bool {
				if x, ok := e.State[o.Addr]; !ok || x.Type != o.Type || x.Length != o.Length {
					t.Fatalf("file %d, collection %d: %+v, truth %+v", i, c.GC, o, x)
				}
				return true
			})
		}
		for _, c := range replay.Compared {
			if c.Mismatches() > 0 {
				t.Errorf("file %d: slice at %d: %v", i, c.GC, c.First)
			}
		}
		if len(replay.Faults) > 0 || sums.Different > 0 {
			t.Errorf("file %d: %q; summaries: %s", i, replay.Faults, sums.First)
		}
		types += sums.Types
		if known > 0 {
			complete++
		}
	}
	if types == 0 {
		t.Error("no summary says what lives at the end of a listing")
	}
	if complete < len(files)-1 || len(files) < 3 || partial < 5 {
		t.Errorf("%d of %d files became complete, %d collections were partial", complete, len(files), partial)
	}
}
