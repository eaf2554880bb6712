package sessiontest

import (
	"testing"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// CheckSummaries holds the summaries of files against the model: each has collections of its own file, once, and
// what they say lives is what lived.
func CheckSummaries(t *testing.T, files [][]byte, byGC map[uint64]*tracetest.Epoch) {
	t.Helper()
	summaries, sums, known := 0, 0, 0
	for i, f := range files {
		here := map[uint64]bool{}
		for b, err := range trace.Blocks(f) {
			if err != nil {
				t.Fatal(err)
			}
			if b.Kind == trace.KindEpoch {
				if e, err := trace.DecodeEpoch(b); err == nil {
					here[e.Pause.GC] = true
				}
			}
			if b.Kind != trace.KindSummary {
				continue
			}
			s, err := trace.DecodeSummary(b)
			if err != nil {
				t.Fatal(err)
			}
			summaries++
			for _, c := range s.Collections {
				if !here[c.GC] {
					t.Errorf("file %d: the summary has collection %d, which is in it twice or not in the file",
						i, c.GC)
				}
				delete(here, c.GC)
				e := byGC[c.GC]
				if e.Pause.Kind != c.Kind || e.Pause.Dur != c.Dur || e.Pause.Cause != c.Cause {
					t.Errorf("collection %d: %+v, want %+v", c.GC, c, e.Pause)
				}
				bytes := uint64(0)
				for _, o := range e.State {
					bytes += o.Words * 8
				}
				if c.Flags&trace.RowKnown != 0 {
					if known++; c.Objects != uint64(len(e.State)) || c.Bytes != bytes {
						t.Errorf("collection %d: %d objects and %d bytes, want %d and %d", c.GC, c.Objects, c.Bytes,
							len(e.State), bytes)
					}
				}
			}
			if s.At == 0 {
				continue
			}
			live := map[uint64]trace.TypeSum{}
			for _, o := range byGC[s.At].State {
				n := live[uint64(o.Type)]
				live[uint64(o.Type)] = trace.TypeSum{Objects: n.Objects + 1, Bytes: n.Bytes + o.Words*8}
			}
			for _, ty := range s.Types {
				sums++
				if n := live[ty.Type]; n.Objects != ty.Objects || n.Bytes != ty.Bytes {
					t.Errorf("collection %d, type %d: %+v, want %+v", s.At, ty.Type, ty, n)
				}
				delete(live, ty.Type)
			}
			if len(live) > 0 {
				t.Errorf("collection %d: types %v are missing", s.At, live)
			}
		}
		if i < len(files)-1 && len(here) > 0 {
			t.Errorf("file %d: collections %v are in no summary", i, here)
		}
	}
	if summaries < len(files)-1 || sums == 0 || known == 0 {
		t.Errorf("%d summaries in %d files, %d sums by type, %d known states", summaries, len(files), sums, known)
	}
}
