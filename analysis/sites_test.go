package analysis

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestIntervals draws samples of known populations and counts how often the 95 % interval holds the truth: nearly as often as it says, for
// small and large counts, for rare and frequent draws, and for sizes that differ.
func TestIntervals(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		n, size, spread int
		interval        float64
	}{{2000, 24, 0, 16384}, {500, 2016, 0, 16384}, {300, 4096, 0, 4096}, {3000, 100, 400, 65536}, {5000, 16, 2000, 16384}, {50, 30000, 0, 16384}, {400, 100, 0, 0}} {
		const trials = 2000
		objects, bytes, seen, width := 0, 0, 0, 0.0
		for range trials {
			var ta tally
			truth := 0.0
			for range c.n {
				size := c.size
				if c.spread > 0 {
					size += rng.IntN(c.spread)
				}
				truth += float64(size)
				p := 1.0
				if c.interval > 0 {
					p = -math.Expm1(-float64(size) / c.interval)
				}
				if rng.Float64() < p {
					ta.add(&heap.Sample{Sample: trace.Sample{Size: uint64(size)}, Weight: 1 / p})
				}
			}
			if ta.n == 0 {
				continue // no row is shown
			}
			seen++
			if l, h := ta.objects.interval(); l <= float64(c.n)+1e-6 && float64(c.n) <= h+1e-6 {
				objects++
				width += h - l
			}
			if l, h := ta.bytes.interval(); l <= truth+1e-3 && truth <= h+1e-3 {
				bytes++
			}
		}
		o, b := float64(objects)/float64(seen), float64(bytes)/float64(seen)
		t.Logf("%+v: %.3f of objects, %.3f of bytes, mean width %.0f", c, o, b, width/float64(seen))
		if o < 0.93 || b < 0.90 {
			t.Errorf("%+v: intervals hold %.3f of objects, %.3f of bytes", c, o, b)
		}
		if c.interval == 0 && (width != 0 || o != 1) {
			t.Errorf("intervals of a full count are not points: %v", width)
		}
	}
}

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

// TestOpen opens a recording at its last collection in one pass, and in two where the end is not known; both give the state of that collection.
func TestOpen(t *testing.T) {
	m := tracetest.New(tracetest.Config{Seed: 2})
	var bs []trace.Block
	var e *tracetest.Epoch
	for i := range 12 {
		e = m.Step(i == 0)
		bs = append(bs, e.Blocks...)
	}
	for name, tail := range map[string][]trace.Block{"end": nil, "lost": {trace.EncodeGap(trace.Gap{Reason: trace.GapOverflow, Epochs: 3})}} {
		opened := 0
		open := func() *heap.Replay { opened++; return heap.NewReplay(&blocks{append(slices.Clone(bs), tail...)}) }
		r, c, err := Open("last", open, open)
		if err != nil || c.GC != e.Pause.GC || r.State.Objects() != len(e.State) || uint64(r.State.Objects()) != c.Objects {
			t.Errorf("%s: %v, %+v, %d objects of %d", name, err, c, r.State.Objects(), len(e.State))
		}
		if tail == nil && opened != 1 {
			t.Errorf("%s: %d passes", name, opened)
		}
	}
	open := func() *heap.Replay { return heap.NewReplay(&blocks{}) }
	if _, _, err := Open("last", open, open); !errors.Is(err, ErrNotThere) {
		t.Errorf("nothing: %v", err)
	}
}
