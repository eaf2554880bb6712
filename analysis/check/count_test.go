package check

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/columns"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// withoutTokens are the blocks without the tokens of epochs, as a ring file gives them where frames hold columns.
func withoutTokens(t interface{ Fatal(...any) }, bs []trace.Block) (out []trace.Block) {
	var e columns.Encoder
	for _, b := range bs {
		if b.Kind == trace.KindEpoch {
			p := trace.AppendBlock(nil, b)
			stripped, err := columns.DecodeWithoutTokens(nil, bytes.NewReader(e.Encode(nil, p)), len(p))
			if err != nil {
				t.Fatal(err)
			}
			if b, _, err = trace.ReadBlock(stripped); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, b)
	}
	return out
}

// TestCounter compares a replay that only counts with one that follows objects, on random recordings with full
// collections, lost epochs, walks and fillers over dead objects; and the reports that the two make.
func TestCounter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.SampledFrom([]uint64{trace.DepthSurvivors, trace.DepthFull}).Draw(t, "depth")
		cfg := tracetest.All(rapid.Uint64().Draw(t, "seed"), rapid.Uint64Range(1, 3).Draw(t, "collector"), depth)
		cfg.Scrub = rapid.Bool().Draw(t, "scrub")
		m := tracetest.New(cfg)
		bs := m.Head()
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			var e *tracetest.Epoch
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				e = m.FullGC()
			case 1:
				e = m.Walk()
			default:
				e = m.Step(rapid.IntRange(0, 4).Draw(t, "sync") == 0)
			}
			bs = append(bs, e.Blocks...)
		}
		bs = append(bs, m.End())
		few := withoutTokens(t, bs)
		r, check := heap.NewReplay(&analysistest.Source{B: slices.Clone(bs)}), Counts(
			heap.NewCensus(&analysistest.Source{B: slices.Clone(few)}),
		)
		n := uint64(0)
		if err := collection.Each(r,
			func(c *heap.Collection) bool { check.Collection(r, c); n++; return true }); err != nil {
			t.Fatal(err)
		}
		if check.Different > 0 {
			t.Fatal(check.First)
		}
		counter := heap.NewCensus(&analysistest.Source{B: few})
		got, err := analysis.MakeReport(counter, leak.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if counter.Unsure {
			return
		}
		if check.Compared != n {
			t.Fatalf("%d of %d collections compared", check.Compared, n)
		}
		want, err := analysis.MakeReport(heap.NewReplay(&analysistest.Source{B: bs}), leak.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Open {
			got.Settle(&leak.Report{Verdicts: want.Verdicts, Misses: want.Misses, Full: want.Full,
				Headline: want.FirstLook})
		}
		if len(got.Sites) != len(want.Sites) {
			t.Fatalf("%d sites, counted %d", len(want.Sites), len(got.Sites))
		}
		got.Sites, want.Sites = nil, nil   // inferred otherwise
		got.Misses, want.Misses = nil, nil // who follows objects knows another reason for some
		a, _ := json.Marshal(want)
		if b, _ := json.Marshal(got); check.Swept == 0 && !bytes.Equal(a, b) {
			t.Fatalf("the reports differ:\n%s\n%s", a, b)
		}
	})
}
