package analysis

import (
	"bytes"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestMissed reads a recording in which collections without events came before two of four: once three, once as many as
// a recording of before does not say.
func TestMissed(t *testing.T) {
	make4 := func() *heap.Replay {
		src := []trace.Block{
			trace.EncodeMeta(
				trace.Meta{HasJVM: true,
					JVM: trace.JVM{ABI: 1, Collector: trace.CollectorSerial, Align: 8, HeapWords: 1 << 20, Depth: 1}},
			),
		}
		for i, flags := range []uint64{0, trace.PauseMissed | 3<<trace.PauseMissedShift, 0, trace.PauseMissed} {
			gc := uint64(i + 1)
			src = append(src, trace.EncodeEpoch(&trace.Epoch{
				Pause: trace.Pause{GC: gc, Kind: trace.PauseYoung, Flags: flags, Depth: trace.DepthSamples,
					Start: gc * 1e9,
					Dur:   1e6},
				Spaces: []trace.Space{{Kind: trace.SpaceOld, Top: 1 << 10, End: 1 << 12, UsedBefore: 6 << 10,
					UsedAfter: 4 << 10}},
			}))
		}
		return heap.NewReplay(&analysistest.Source{B: src})
	}
	rep, err := MakeReport(make4(), leak.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if rep.Missed != 4 || rep.LostEpochs != 0 || len(rep.Collections) != 4 {
		t.Errorf("%d missed, %d lost, %d collections", rep.Missed, rep.LostEpochs, len(rep.Collections))
	}
	for i, want := range []uint64{0, 3, 0, 1} {
		c := rep.Collections[i]
		if c.Missed != want {
			t.Errorf("collection %d: %d missed before it, want %d", c.GC, c.Missed, want)
		}
		if known := c.Allocated != nil; known != (i == 2) { // nobody knows what was in use after a missed one
			t.Errorf("collection %d: what was allocated before it is known: %v", c.GC, known)
		}
	}
	q, err := sites.MakeCoverage(make4())
	if err != nil {
		t.Fatal(err)
	}
	l, err := leak.Find(make4(), leak.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	rep.WriteText(&out, "x")
	q.WriteText(&out, 0)
	l.WriteText(&out, "x")
	if n := strings.Count(out.String(), "4 collections without events: their pauses are"); q.Missed != 4 ||
		l.Missed != 4 || n != 3 {
		t.Errorf("coverage %d, leaks %d missed; %d texts of three say so:\n%s", q.Missed, l.Missed, n, out.String())
	}
}

// TestFloors counts the collections that tell what is dead, and says so where there are none.
func TestFloors(t *testing.T) {
	for _, full := range []int{0, 3} {
		steps := 7
		if full > 0 {
			steps = 40
		}
		m := tracetest.New(tracetest.Config{Seed: 11})
		var bs []trace.Block
		old := 0
		for i := range steps {
			e := m.Step(i == 0)
			if full > 0 && i%full == 0 {
				if bs = append(bs, e.Blocks...); e.Pause.Kind == trace.PauseFull {
					old++
				}
				e = m.FullGC()
			}
			if e.Pause.Kind == trace.PauseFull {
				old++
			}
			bs = append(bs, e.Blocks...)
		}
		rep, err := MakeReport(heap.NewReplay(&analysistest.Source{B: bs}), leak.Options{})
		if err != nil || rep.OldCollections != old {
			t.Errorf("%v, %d old collections of %d", err, rep.OldCollections, old)
		}
		l, err := leak.Find(heap.NewReplay(&analysistest.Source{B: bs}), leak.Options{})
		if err != nil || l.Floors == 0 && full > 0 || (l.Note == "") != (l.Floors > 0) {
			t.Errorf("%v %+v", err, l)
		}
	}
}
