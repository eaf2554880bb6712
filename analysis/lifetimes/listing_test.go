package lifetimes

import (
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// TestNewFiller: a full collection of Parallel puts a filler over the first of four objects. An old filler of the same
// size is behind them. The three others still live, and the program made no filler.
func TestNewFiller(t *testing.T) {
	const kept, filler = 1, 2
	types := []trace.Type{{ID: kept, Size: 16, Name: "a/Kept"},
		{ID: filler, Size: 16, Name: "jdk/internal/vm/FillerObject", Flags: trace.TypeFiller}}
	table := trace.NewTypeTable(8)
	if err := table.DefineAll(types); err != nil {
		t.Fatal(err)
	}
	blocks := []trace.Block{
		trace.EncodeMeta(trace.Meta{HasJVM: true, JVM: trace.JVM{ABI: trace.ABIVersion, Major: 25,
			Collector: trace.CollectorParallel, Align: 8, Depth: trace.DepthSurvivors}}),
		trace.EncodeDefs(trace.Defs{Types: types})}
	add := func(gc, kind, flags uint64, objects ...uint32) {
		e := trace.Epoch{Pause: trace.Pause{GC: gc, Kind: kind, Flags: flags, Depth: trace.DepthSurvivors,
			Start: gc * 1e9}, Spaces: []trace.Space{
			{Kind: trace.SpaceEden, Bottom: 10, Top: 50, End: 50, UsedBefore: 96},
			{Kind: trace.SpaceOld, Bottom: 100, Top: 110, End: 200, UsedBefore: 80, UsedAfter: 80}}}
		blocks = append(blocks, trace.EncodeEpoch(&e))
		if len(objects) == 0 {
			return
		}
		y, l := trace.Sync{GC: gc, Reason: trace.SyncFull, Objects: uint64(len(objects))}, trace.NewListEncoder(table)
		for i, typ := range objects {
			l.Object(100+2*uint64(i), typ, 0)
			y.Bytes += 16
		}
		y.Lists = [][]byte{l.Bytes()}
		blocks = append(blocks, trace.EncodeSync(&y))
	}
	add(1, trace.PauseFull, 0, kept, kept, kept, kept, filler)
	add(2, trace.PauseYoung, trace.PauseExact)
	add(3, trace.PauseFull, 0, filler, kept, kept, kept)
	r := heap.NewReplay(&analysistest.Source{B: blocks})
	tape, err := Read(r)
	if err != nil {
		t.Fatal(err, r.Faults, r.Damage)
	}
	dead := 0
	for i := range tape.Len() {
		if tape.Type[i] != kept {
			t.Errorf("object %d is a %s", i, tape.Names(tape.Type[i]))
		}
		if tape.Dead[i] != Never {
			dead++
		}
	}
	if tape.Len() != 4 || dead != 1 {
		t.Errorf("%d of %d objects died, want 1 of 4", dead, tape.Len())
	}
}
