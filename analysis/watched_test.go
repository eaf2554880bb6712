package analysis

import (
	"errors"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/lifetimes"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// watchedRecording is one of ZGC: cycles after which more and more is in use, a watched sample that stands for far more
// than the heap has, and a reading at the end.
func watchedRecording() []trace.Block {
	out := []trace.Block{
		trace.EncodeMeta(trace.Meta{HasJVM: true, JVM: trace.JVM{ABI: trace.ABIVersion, Major: 25,
			Collector: trace.CollectorZGC, Align: 8, Depth: trace.DepthSamples, MaxHeap: 256 << 20}}),
		trace.EncodeDefs(trace.Defs{Types: []trace.Type{{ID: 1, Size: 16, Flags: trace.TypeArray, Name: "[B"}},
			Methods: []trace.Method{{ID: 1, Class: "La/B;", Name: "c"}}, Frames: []trace.Frame{{ID: 1, Method: 1}}}),
		trace.EncodeSamples([]trace.Sample{{ID: 1, Time: 1, Type: 1, Frame: 1, Size: 1 << 20, Interval: 512 << 10,
			Chances: 1000}}),
	}
	for i := uint64(1); i <= 5; i++ {
		e := trace.Epoch{Pause: trace.Pause{GC: i, Kind: trace.PauseMajor, Depth: trace.DepthSamples, Start: i * 1e9,
			Dur: 100_000, Interval: 512 << 10}, HasCycle: true,
			Cycle:  trace.Cycle{Begin: i * 1e9, End: i*1e9 + 1e8, Pauses: 3},
			Spaces: []trace.Space{{Kind: trace.SpaceHeap, UsedBefore: 100 << 20, UsedAfter: i * 10 << 20}}}
		if i == 2 {
			e.Survived = []uint64{1}
		}
		if i == 5 {
			e.Pause.Kind, e.Spaces[0].UsedAfter = trace.PauseReading, 100<<20
		}
		out = append(out, trace.EncodeEpoch(&e))
	}
	return out
}

// TestWatchedReport: of ZGC a reading is no collection, nothing lives that was not in use, and no command is named that
// needs a heap state.
func TestWatchedReport(t *testing.T) {
	rep, err := MakeReport(heap.NewReplay(&analysistest.Source{B: watchedRecording()}), leak.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(rep.Sites); n != 1 || rep.Sites[0].Bytes != 100<<20 || rep.Sites[0].BytesHigh != 100<<20 {
		t.Errorf("%+v", rep.Sites)
	}
	var text strings.Builder
	rep.WriteText(&text, "x")
	for want, there := range map[string]bool{"10.0 MiB → 40.0 MiB (first → last; the limit is 256.0 MiB)": true,
		"heapcam history": false, "heapcam diff": false} {
		if strings.Contains(text.String(), want) != there {
			t.Errorf("%q is there: %v\n%s", want, !there, &text)
		}
	}
	_, err = lifetimes.Read(heap.NewReplay(&analysistest.Source{B: watchedRecording()}))
	if !errors.Is(err, lifetimes.ErrNoAddresses) || !errors.Is(err, lifetimes.ErrNoObjects) ||
		strings.Contains(err.Error(), "--depth") {
		t.Errorf("%v", err)
	}
}
