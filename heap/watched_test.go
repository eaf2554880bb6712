package heap

import (
	"errors"
	"io"
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// stream is a source of blocks that are made by hand.
type stream []trace.Block

func (s *stream) Next() (trace.Block, error) {
	if len(*s) == 0 {
		return trace.Block{}, io.EOF
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return b, nil
}

func cycle(gc, begin, end uint64, e trace.Epoch) trace.Block {
	e.Pause = trace.Pause{GC: gc, Kind: trace.PauseMajor, Depth: trace.DepthSamples, Start: begin, Dur: 10}
	e.Cycle, e.HasCycle = trace.Cycle{Begin: begin, End: end, Pauses: 3, Longest: 5}, true
	return trace.EncodeEpoch(&e)
}

// TestWatched reads a recording without addresses: watched samples are undecided first, then live or dead, and stand
// for more once others are given up.
func TestWatched(t *testing.T) {
	jvm := trace.JVM{ABI: trace.ABIVersion, Major: 25, Collector: trace.CollectorZGC, Align: 8,
		Depth: trace.DepthSamples}
	sample := func(id, chances uint64) trace.Sample {
		return trace.Sample{ID: id, Time: id, Type: 1, Size: 16, Chances: chances}
	}
	blocks := stream{
		trace.EncodeMeta(trace.Meta{JVM: jvm, HasJVM: true}),
		trace.EncodeSamples([]trace.Sample{sample(1, 4), sample(2, 0), sample(3, 8), sample(4, 2), sample(5, 2)}),
		cycle(1, 10, 20, trace.Epoch{}),
		cycle(2, 30, 90, trace.Epoch{SampleDead: []uint64{3}, Survived: []uint64{1, 4}}),
		cycle(3, 100, 120, trace.Epoch{Unwatched: []uint64{4}, Survived: []uint64{5}}),
		cycle(4, 130, 140, trace.Epoch{SampleDead: []uint64{1}}),
	}
	if v := blocks[0].Version; v != trace.ConcurrentVersion {
		t.Errorf("META has version %d: an older reader would take it", v)
	}
	r := NewReplay(&blocks)
	var c *Collection
	next := func(gc uint64, live map[uint64]float64, undecided int) {
		t.Helper()
		var err error
		if c, err = r.Next(); err != nil || c.GC != gc || c.Known {
			t.Fatalf("%+v, %v, want collection %d", c, err, gc)
		}
		if r.Live.Len() != len(live) || r.Undecided() != undecided {
			t.Errorf("after %d: %d live, %d undecided, want %d and %d", gc, r.Live.Len(), r.Undecided(), len(live),
				undecided)
		}
		for id, w := range live {
			if s := r.Live.Get(id); s == nil || s.Weight != w {
				t.Errorf("after %d: sample %d is %+v, want the weight %v", gc, id, s, w)
			}
		}
	}
	next(1, nil, 4)
	if len(r.All) != 5 || len(r.Sampled) != 4 || r.Taken != 5 || r.WatchedTaken != 4 {
		t.Errorf("%d samples, %d watched", len(r.All), len(r.Sampled))
	}
	next(2, map[uint64]float64{1: 4, 4: 2}, 1)
	if c.End() != 90 || c.Cycle.Pauses != 3 {
		t.Errorf("the cycle ends at %d: %+v", c.End(), c.Cycle)
	}
	next(3, map[uint64]float64{1: 8, 5: 4}, 0)
	if !r.Doubled || len(r.Left) != 1 || r.Left[0].ID != 4 || len(r.Died) != 0 {
		t.Errorf("given up: %v, died: %v", r.Left, r.Died)
	}
	next(4, map[uint64]float64{5: 4}, 0)
	if _, err := r.Next(); !errors.Is(err, io.EOF) || len(r.Faults)+len(r.Damage) > 0 {
		t.Errorf("%v, %v, %v", err, r.Faults, r.Damage)
	}
}

// TestWatchedFromSync begins to read at a sync point, as in a file whose predecessors were evicted.
func TestWatchedFromSync(t *testing.T) {
	jvm := trace.JVM{ABI: trace.ABIVersion, Major: 25, Collector: trace.CollectorShenandoah, Align: 8,
		Depth: trace.DepthSamples}
	blocks := stream{
		trace.EncodeMeta(trace.Meta{JVM: jvm, HasJVM: true}),
		trace.EncodeSync(&trace.Sync{GC: 7, Reason: trace.SyncRotation,
			Samples:  []trace.LiveSample{{ID: 3, Size: 16, Birth: 2}, {ID: 9, Size: 24, Birth: 5}},
			Watching: []trace.Watching{{ID: 3, Type: 1, Chances: 32, Survived: true}, {ID: 9, Type: 2, Chances: 4}}}),
		cycle(8, 10, 20, trace.Epoch{Survived: []uint64{9}}),
	}
	r := NewCensus(&blocks)
	c, err := r.Next()
	if err != nil || c.GC != 8 || c.EpochsLost != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	if a, b := r.Live.Get(3), r.Live.Get(9); a == nil || b == nil || a.Weight != 32 || a.Type != 1 || b.Weight != 4 ||
		b.Type != 2 || b.Birth != 5 {
		t.Errorf("live are %+v and %+v", a, b)
	}
}
