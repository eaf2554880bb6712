package sites

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestQualityAlone reads from each sync point on: what is known there is what the whole recording knows, since sync
// points carry sites.
func TestQualityAlone(t *testing.T) {
	m := tracetest.New(tracetest.All(5, trace.CollectorParallel, trace.DepthSurvivors))
	var bs []trace.Block
	for i := range 60 {
		bs = append(bs, m.Step(i%12 == 0).Blocks...)
	}
	q, err := MakeCoverage(heap.NewReplay(&analysistest.Source{B: bs}))
	if err != nil || len(q.Collections) < 30 {
		t.Fatal(err, len(q.Collections))
	}
	known, unknown := 0.0, uint64(0)
	for _, c := range q.Collections {
		if o, _ := c.Quality.Known(); c.Known {
			known += o
		}
		if !c.Known {
			unknown++
		}
	}
	var text strings.Builder
	q.WriteText(&text, 0)
	want := "the heap state of " + ui.Plural(unknown, "collection")
	if unknown == 0 || q.UnknownGCs != unknown || !strings.Contains(text.String(), want) {
		t.Errorf("%d unknown states, want %q in:\n%s", q.UnknownGCs, want, &text)
	}
	var defs []trace.Block
	syncs := 0
	for i, b := range bs {
		switch b.Kind {
		case trace.KindMeta, trace.KindDefs:
			defs = append(defs, b)
		case trace.KindSync:
			before := len(q.SyncPoints)
			if err := q.Alone(heap.NewReplay(&analysistest.Source{B: append(append([]trace.Block{}, defs...),
				bs[i:]...)})); err != nil {
				t.Fatal(err)
			}
			if len(q.SyncPoints) == before {
				continue
			}
			syncs++
			s := q.SyncPoints[before]
			for k := range s.Alone {
				if math.Abs(s.Alone[k]-s.Whole[k]) > 0.02 {
					t.Errorf("from collection %d on, %d later: %.3f known, by the whole recording %.3f", s.GC, k,
						s.Alone[k], s.Whole[k])
					break
				}
			}
		}
	}
	var out bytes.Buffer
	q.WriteText(&out, 0)
	if syncs < 3 || known == 0 || bytes.Count(out.Bytes(), []byte("\n")) < len(q.Collections)+3 {
		t.Errorf("%d sync points, %v known\n%s", syncs, known, out.String())
	}
}

// TestCoverageWords: what the sampling interval means depends on what else is known, and no advice is given that was
// followed in vain.
func TestCoverageWords(t *testing.T) {
	poor := []CoverageRow{{GC: 9, Known: true, Quality: Coverage{ExactBytes: 1, UnknownBytes: 9}}}
	for name, c := range map[string]struct {
		q       CoverageReport
		has, no string
	}{
		"samples": {CoverageReport{Sampling: collection.Sampling{Interval: 65536}}, "A smaller --sampling shows",
			"Exact objects"},
		"given up": {CoverageReport{Sampling: collection.Sampling{Interval: 65536, Longer: 3}, LostSamples: 7},
			"given up from collection 3 on", "A smaller --sampling shows"},
		"exact sites": {CoverageReport{Sampling: collection.Sampling{Interval: 65536}, Noted: true},
			"Exact objects are counted", "given up"},
	} {
		c.q.Collections = poor
		c.q.SeenBytes, c.q.KnownBytes = 1<<20, 1<<24
		var b bytes.Buffer
		c.q.WriteText(&b, 0)
		text := strings.Join(strings.Fields(b.String()), " ")
		if !strings.Contains(text, c.has) || strings.Contains(text, c.no) {
			t.Errorf("%s: it has to have %q, and not %q:\n%s", name, c.has, c.no, &b)
		}
	}
}
