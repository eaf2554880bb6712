package heap

import (
	"io"
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// TestStaleState: a sync point without objects names a sample at an address where the state that was known before the
// fault has an object of another class. What is known no more says nothing: the sample gets the class of the next
// listing, as the recorder's own count of samples says.
func TestStaleState(t *testing.T) {
	types := []trace.Type{{ID: 1, Size: 16, Name: "a/Old"}, {ID: 2, Size: 16, Name: "b/New"}}
	table := trace.NewTypeTable(8)
	if err := table.DefineAll(types); err != nil {
		t.Fatal(err)
	}
	sync := func(gc, addr uint64, typ uint32, live ...trace.LiveSample) trace.Block {
		y := trace.Sync{GC: gc, Reason: trace.SyncDepth, Samples: live}
		if typ != 0 {
			e := trace.NewListEncoder(table)
			e.Object(addr, typ, 0)
			y.Lists, y.Objects, y.Bytes = [][]byte{e.Bytes()}, 1, 16
		}
		return trace.EncodeSync(&y)
	}
	sample := func(addr uint64) trace.LiveSample {
		return trace.LiveSample{ID: 7, Addr: addr, Size: 16, Interval: 512}
	}
	epoch := func(gc uint64) trace.Block {
		return trace.EncodeEpoch(&trace.Epoch{Pause: trace.Pause{GC: gc, Kind: trace.PauseYoung,
			Depth: trace.DepthSurvivors, Start: gc * 100}})
	}
	src := stream{
		trace.EncodeMeta(trace.Meta{HasJVM: true, JVM: trace.JVM{ABI: trace.ABIVersion, Major: 25,
			Collector: trace.CollectorG1, Align: 8, Depth: trace.DepthSurvivors}}),
		trace.EncodeDefs(trace.Defs{Types: types}),
		epoch(1), sync(1, 100, 1),
		epoch(2), sync(2, 0, 0, sample(100)),
		epoch(3), sync(3, 200, 2, sample(200)),
	}
	r := NewReplay(&src)
	for {
		c, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.GC == 2 && (c.Known || r.Live.Len() != 1) {
			t.Errorf("after the sync point without objects: known %t, %d live samples", c.Known, r.Live.Len())
		}
	}
	if s := r.Live.Get(7); s == nil || s.Type != 2 || !r.Known {
		t.Errorf("known %t, faults %v, live %+v, want type 2", r.Known, r.Faults, s)
	}
}
