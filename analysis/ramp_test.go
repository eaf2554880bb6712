package analysis

import (
	"bytes"
	"github.com/heapcam/heapcam/analysis/leak"
	"io"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// rolledBlocks is a recording that begins with a listing in slices.
type rolledBlocks []trace.Block

func (s *rolledBlocks) Next() (trace.Block, error) {
	if len(*s) == 0 {
		return trace.Block{}, io.EOF
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return b, nil
}

// TestReportOfARamp: a report says when a listing that was spread over collections is complete, and a question for an
// earlier one is answered with what is known of it.
func TestReportOfARamp(t *testing.T) {
	m := tracetest.New(tracetest.Config{Seed: 11, Collector: trace.CollectorParallel, Eden: 2048, Slice: 350})
	var all rolledBlocks
	var head []trace.Block
	first, complete, last := uint64(0), uint64(0), uint64(0)
	for i := range 80 {
		e := m.Step(i > 12 && head == nil)
		switch {
		case e.First && i > 12 && head == nil:
			first = e.Pause.GC
			head = m.Head()
			all = append(append(all, head...), e.Blocks[len(e.Blocks)-1])
		case head != nil:
			all = append(all, e.Blocks...)
		}
		if head != nil && e.Synced && complete == 0 {
			complete = e.Pause.GC
		}
		last = e.Pause.GC
	}
	if head == nil || complete < first+3 || complete == last {
		t.Fatalf("not what this test needs: from %d, complete after %d of %d", first, complete, last)
	}
	open := func() *rolledBlocks { c := append(rolledBlocks{}, all...); return &c }
	rep, err := MakeReport(heap.NewReplay(open()), leak.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if rep.CompleteAfter != complete || rep.PartialGCs < int(complete-first-1) {
		t.Errorf("complete after %d with %d before, want %d from %d on", rep.CompleteAfter, rep.PartialGCs, complete,
			first)
	}
	for _, c := range rep.Collections {
		if c.GC <= complete && (c.Partial != (c.GC < complete) || c.Partial && c.Objects == 0) {
			t.Errorf("collection %d: %+v", c.GC, c)
		}
	}
	var text bytes.Buffer
	rep.WriteText(&text, "x")
	if !strings.Contains(text.String(), "complete after collection") {
		t.Errorf("the report does not say so:\n%s", text.String())
	}
	_, err = collection.At(heap.NewReplay(open()), first+1)
	if err == nil || !strings.Contains(err.Error(), "known in part") ||
		!strings.Contains(err.Error(), "complete after") {
		t.Errorf("collection %d: %v", first+1, err)
	}
}
