package collection

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestFind finds collections by number, word and time.
func TestFind(t *testing.T) {
	day := time.Date(2026, 3, 4, 10, 0, 0, 0, time.Local)
	points := []Point{{3, 100, day}, {4, 900, day.Add(10 * time.Second)}, {6, 500, day.Add(20 * time.Second)}}
	for ref, want := range map[string]uint64{"first": 3, "last": 6, "peak": 4, "10:00:15": 4, "10:00:20": 6, "10:00": 3,
		day.Add(11 * time.Second).Format(time.RFC3339): 4} {
		if got, err := FindAmong(ref, points); err != nil || got != want {
			t.Errorf("%s: %d %v, want %d", ref, got, err, want)
		}
	}
	if _, err := FindAmong("09:00", points); err == nil {
		t.Error("a time before the recording was found")
	}
	if _, err := FindAmong("teatime", points); err == nil || err.(*RefError).Ref != "teatime" {
		t.Errorf("teatime: %v", err)
	}
	if n, err := Find[heap.Reader]("17", nil, nil); err != nil || n != 17 {
		t.Errorf("17: %d %v", n, err)
	}
}

// TestOpen opens a recording at its last collection in one pass, and in two where the end is not known; both give the
// state of that collection.
func TestOpen(t *testing.T) {
	m := tracetest.New(tracetest.Config{Seed: 2})
	var bs []trace.Block
	var e *tracetest.Epoch
	for i := range 12 {
		e = m.Step(i == 0)
		bs = append(bs, e.Blocks...)
	}
	for name, tail := range map[string][]trace.Block{"end": nil,
		"lost": {trace.EncodeGap(trace.Gap{Reason: trace.GapOverflow, Epochs: 3})}} {
		opened := 0
		open := func() *heap.Replay {
			opened++
			return heap.NewReplay(&analysistest.Source{B: append(slices.Clone(bs), tail...)})
		}
		r, c, err := Open("last", open, open)
		if err != nil || c.GC != e.Pause.GC || r.State.Objects() != len(e.State) ||
			uint64(r.State.Objects()) != c.Objects {
			t.Errorf("%s: %v, %+v, %d objects of %d", name, err, c, r.State.Objects(), len(e.State))
		}
		if tail == nil && opened != 1 {
			t.Errorf("%s: %d passes", name, opened)
		}
	}
	open := func() *heap.Replay { return heap.NewReplay(&analysistest.Source{}) }
	if _, _, err := Open("last", open, open); !errors.Is(err, ErrNotThere) {
		t.Errorf("nothing: %v", err)
	}
}

// TestOpenFirst opens a recording at the first collection of which all objects are listed. Counting finds an earlier
// one, as where a listing in slices has counted all before it has listed all.
func TestOpenFirst(t *testing.T) {
	m := tracetest.New(tracetest.Config{Seed: 2})
	var all, listed []trace.Block
	for i := range 12 {
		e := m.Step(i == 0 || i == 5)
		all = append(all, e.Blocks...)
		if i == 5 {
			listed = append(m.Head(), e.Blocks[len(e.Blocks)-1])
		} else if i > 5 {
			listed = append(listed, e.Blocks...)
		}
	}
	count := func() *heap.Census { return heap.NewCensus(&analysistest.Source{B: slices.Clone(all)}) }
	open := func() *heap.Replay { return heap.NewReplay(&analysistest.Source{B: slices.Clone(listed)}) }
	counted, _ := Points(count())
	want, _ := Points(open())
	if len(want) == 0 || counted[0].GC >= want[0].GC {
		t.Fatalf("known %+v, counted %+v", want, counted)
	}
	if _, c, err := Open("first", count, open); err != nil || c.GC != want[0].GC {
		t.Errorf("%+v, %v; want collection %d", c, err, want[0].GC)
	}
	if _, _, err := Open("1", count, open); !errors.Is(err, ErrNotThere) {
		t.Errorf("a number is looked for, and no other: %v", err)
	}
}
