package analysis

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

type blocks struct{ b []trace.Block }

func (s *blocks) Next() (trace.Block, error) {
	if len(s.b) == 0 {
		return trace.Block{}, io.EOF
	}
	b := s.b[0]
	s.b = s.b[1:]
	return b, nil
}

// TestReport makes a report of random streams: one row a collection, quality that adds up, JSON without a null list, one screen of text.
func TestReport(t *testing.T) {
	for _, col := range []uint64{trace.CollectorSerial, trace.CollectorParallel, trace.CollectorG1} {
		m := tracetest.New(tracetest.All(7, col, trace.DepthSurvivors))
		var bs []trace.Block
		epochs := 0
		for i := range 40 {
			e := m.Step(i%6 == 0)
			bs = append(bs, e.Blocks...)
			if !e.Dropped {
				epochs++
			}
		}
		rep, err := MakeReport(heap.NewReplay(&blocks{append(bs, m.End())}))
		if err != nil {
			t.Fatal(err)
		}
		if len(rep.Collections) != epochs {
			t.Errorf("%d rows for %d collections", len(rep.Collections), epochs)
		}
		for _, c := range rep.Collections {
			q := c.Quality
			if c.Known && (q.ExactObjects+q.InferredObjects+q.BeforeObjects+q.UnknownObjects != c.Objects || q.ExactBytes+q.InferredBytes+q.BeforeBytes+q.UnknownBytes != c.Bytes) {
				t.Errorf("collection %d: %+v of %d objects, %d bytes", c.GC, q, c.Objects, c.Bytes)
			}
			if sum := c.Eden + c.Survivor + c.Old + c.Humongous; sum != c.Used {
				t.Errorf("collection %d: spaces sum to %d, %d are used", c.GC, sum, c.Used)
			}
		}
		j, err := json.Marshal(rep)
		if err != nil || bytes.Contains(j, []byte(`"suspects":null`)) || !bytes.Contains(j, []byte(`"schema":"heapcam.report/1"`)) {
			t.Errorf("%v: %.200s", err, j)
		}
		var text strings.Builder
		rep.WriteText(&text)
		if n := strings.Count(text.String(), "\n"); n > 40 {
			t.Errorf("%d lines are no screen", n)
		}
		var back Report // as an index keeps it
		var again strings.Builder
		if err := json.Unmarshal(j, &back); err != nil {
			t.Fatal(err)
		}
		if k, err := json.Marshal(&back); err != nil || !bytes.Equal(j, k) {
			t.Errorf("JSON that was read is written otherwise: %v", err)
		}
		if back.WriteText(&again); again.String() != text.String() {
			t.Errorf("a report that was read says otherwise:\n%s\n%s", &text, &again)
		}
	}
	rep, err := MakeReport(heap.NewReplay(&blocks{}))
	if err != nil || rep.FirstLook == "" {
		t.Errorf("empty recording: %v", err)
	}
	rep.WriteText(io.Discard)
}
