package analysis

import (
	"bytes"
	"encoding/json"
	"github.com/heapcam/heapcam/analysis/leak"
	"io"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestReport makes a report of random streams: one row a collection, quality that adds up, JSON without a null list,
// one screen of text.
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
		rep, err := MakeReport(heap.NewReplay(&analysistest.Source{B: append(bs, m.End())}), leak.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(rep.Collections) != epochs {
			t.Errorf("%d rows for %d collections", len(rep.Collections), epochs)
		}
		for _, c := range rep.Collections {
			q := c.Quality
			if c.Known &&
				(q.ExactObjects+q.InferredObjects+q.BeforeObjects+q.UnknownObjects != c.Objects ||
					q.ExactBytes+q.InferredBytes+q.BeforeBytes+q.UnknownBytes != c.Bytes) {
				t.Errorf("collection %d: %+v of %d objects, %d bytes", c.GC, q, c.Objects, c.Bytes)
			}
			if sum := c.Eden + c.Survivor + c.Old + c.Humongous; sum != c.Used {
				t.Errorf("collection %d: spaces sum to %d, %d are used", c.GC, sum, c.Used)
			}
		}
		j, err := json.Marshal(rep)
		if err != nil || bytes.Contains(j, []byte(`"verdicts":null`)) ||
			!bytes.Contains(j, []byte(`"schema":"heapcam.report/2"`)) {
			t.Errorf("%v: %.200s", err, j)
		}
		var text strings.Builder
		rep.WriteText(&text, "x")
		if n := strings.Count(text.String(), "\n"); n > 50 {
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
		if back.WriteText(&again, "x"); again.String() != text.String() {
			t.Errorf("a report that was read says otherwise:\n%s\n%s", &text, &again)
		}
	}
	rep, err := MakeReport(heap.NewReplay(&analysistest.Source{}), leak.Options{})
	if err != nil || rep.FirstLook == "" {
		t.Errorf("empty recording: %v", err)
	}
	rep.WriteText(io.Discard, "x")
}

// TestOneCollection: with one collection there is no time between two, and no share of it.
func TestOneCollection(t *testing.T) {
	rep := &Report{Collections: []CollectionRow{{GC: 1, PauseNS: 44e6, Kind: "young"}}, PauseNS: 44e6, WindowNS: 44e6}
	var text strings.Builder
	rep.WriteText(&text, "")
	if s := text.String(); !strings.Contains(s, "of the only collection") || strings.Contains(s, "in all, ") {
		t.Errorf("%s", s)
	}
}

// TestGrownLoaders keeps classes of one name apart by their loaders, and puts hidden classes of one family together.
func TestGrownLoaders(t *testing.T) {
	r := heap.NewReplay(&analysistest.Source{})
	for _, ty := range []trace.Type{{ID: 1, Name: "a/Plugin", Loader: 1}, {ID: 2, Name: "a/Plugin", Loader: 2},
		{ID: 3, Name: "a/L$$Lambda+0x1", Flags: trace.TypeHidden},
		{ID: 4, Name: "a/L$$Lambda+0x2", Flags: trace.TypeHidden}, {ID: 5, Name: "a/Plugin", Loader: 1}} {
		r.Types[ty.ID] = ty
	}
	r.Loaders[1], r.Loaders[2] = trace.Loader{ID: 1, Name: "app"}, trace.Loader{ID: 2, Name: "plugins"}
	rep := &Report{}
	rep.grown(
		r.Symbols,
		nil,
		[]heap.Count{{}, {Objects: 1, Bytes: 100}, {Objects: 2, Bytes: 50}, {Objects: 1, Bytes: 10},
			{Objects: 1, Bytes: 10},
			{Objects: 1, Bytes: 100}},
		nil,
	)
	if len(rep.Grown) != 3 || rep.Grown[0] != (GrownClass{"a.Plugin", "app #1", 2, 200}) ||
		rep.Grown[1] != (GrownClass{"a.Plugin", "plugins #2", 2, 50}) ||
		rep.Grown[2].Bytes != 20 ||
		rep.Grown[2].Loader != "" {
		t.Errorf("%+v", rep.Grown)
	}
}
