package analysis

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// growing is a recording of which more is there from time to time.
type growing struct{ there, later []trace.Block }

func (g *growing) Next() (trace.Block, error) {
	if len(g.there) == 0 {
		return trace.Block{}, heap.ErrPaused
	}
	b := g.there[0]
	g.there = g.there[1:]
	return b, nil
}

func (g *growing) grow(n int) {
	n = min(n, len(g.later))
	g.there, g.later = g.later[:n:n], g.later[n:]
}

// TestReporter: the reports of a recording that grows are those of all that is recorded then, read at once.
func TestReporter(t *testing.T) {
	readers := map[string]func(heap.BlockSource) heap.Reader{
		"replay": func(s heap.BlockSource) heap.Reader { return heap.NewReplay(s) },
		"census": func(s heap.BlockSource) heap.Reader { return heap.NewCensus(s) },
	}
	for _, col := range []uint64{trace.CollectorParallel, trace.CollectorG1} {
		m := tracetest.New(tracetest.All(11, col, trace.DepthSurvivors))
		var bs []trace.Block
		var ends []int // of steps
		for i := range 60 {
			if i%17 == 16 {
				bs = append(bs, m.FullGC().Blocks...)
			} else {
				bs = append(bs, m.Step(i%7 == 0).Blocks...)
			}
			ends = append(ends, len(bs))
		}
		for name, reader := range readers {
			src := &growing{later: bs}
			p := NewReporter(reader(src), leak.Options{})
			for i := 3; i < len(ends); i += 1 + i%5 {
				src.grow(ends[i] - (len(bs) - len(src.later)))
				if err := p.Read(); err != nil {
					t.Fatal(err)
				}
				whole, err := MakeReport(reader(&growing{there: bs[:ends[i]]}), leak.Options{})
				if err != nil {
					t.Fatal(err)
				}
				got, want := inJSON(t, p.Report()), inJSON(t, whole)
				if !bytes.Equal(got, want) {
					t.Fatalf("%s of collector %d after step %d:\n%s\nread at once:\n%s", name, col, i, got, want)
				}
			}
		}
	}
}

func inJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
