package lifetimes

import (
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

const kept, filler = 1, 2

// stream writes collections of Parallel in which only old space, from word 100 on, has objects: of 16 bytes each.
type stream struct {
	types  *trace.TypeTable
	blocks []trace.Block
}

func newStream(t *testing.T) *stream {
	types := []trace.Type{{ID: kept, Size: 16, Name: "a/Kept"},
		{ID: filler, Size: 16, Name: "jdk/internal/vm/FillerObject", Flags: trace.TypeFiller}}
	s := &stream{types: trace.NewTypeTable(8), blocks: []trace.Block{
		trace.EncodeMeta(trace.Meta{HasJVM: true, JVM: trace.JVM{ABI: trace.ABIVersion, Major: 25,
			Collector: trace.CollectorParallel, Align: 8, Depth: trace.DepthSurvivors}}),
		trace.EncodeDefs(trace.Defs{Types: types})}}
	if err := s.types.DefineAll(types); err != nil {
		t.Fatal(err)
	}
	return s
}

// collection adds one, after an eden of 12 words: with a listing, if there are objects.
func (s *stream) collection(gc, kind, flags uint64, samples []trace.LiveSample, objects ...uint32) {
	e := trace.Epoch{Pause: trace.Pause{GC: gc, Kind: kind, Flags: flags, Depth: trace.DepthSurvivors,
		Start: gc * 1e9}, Spaces: []trace.Space{
		{Kind: trace.SpaceEden, Bottom: 10, Top: 50, End: 50, UsedBefore: 96},
		{Kind: trace.SpaceOld, Bottom: 100, Top: 110, End: 200, UsedBefore: 80, UsedAfter: 80}}}
	s.blocks = append(s.blocks, trace.EncodeEpoch(&e))
	if len(objects) == 0 {
		return
	}
	y, l := trace.Sync{GC: gc, Reason: trace.SyncFull, Objects: uint64(len(objects)), Samples: samples},
		trace.NewListEncoder(s.types)
	for i, typ := range objects {
		l.Object(100+2*uint64(i), typ, 0)
		y.Bytes += 16
	}
	y.Lists = [][]byte{l.Bytes()}
	s.blocks = append(s.blocks, trace.EncodeSync(&y))
}

// sampled adds samples of objects that are kept, each for about 100 objects.
func (s *stream) sampled(ids ...uint64) {
	var out []trace.Sample
	for _, id := range ids {
		out = append(out, trace.Sample{ID: id, Type: kept, Size: 16, Interval: 1600})
	}
	s.blocks = append(s.blocks, trace.EncodeSamples(out))
}

func (s *stream) read(t *testing.T) *Tape {
	r := heap.NewReplay(&analysistest.Source{B: s.blocks})
	tape, err := Read(r)
	if err != nil || len(r.Faults) > 0 {
		t.Fatal(err, r.Faults)
	}
	return tape
}

// TestNewFiller: a full collection of Parallel puts a filler over the first of four objects. An old filler of the same
// size is behind them. The three others still live, and the program made no filler.
func TestNewFiller(t *testing.T) {
	s := newStream(t)
	s.collection(1, trace.PauseFull, 0, nil, kept, kept, kept, kept, filler)
	s.collection(2, trace.PauseYoung, trace.PauseExact, nil)
	s.collection(3, trace.PauseFull, 0, nil, filler, kept, kept, kept)
	tape := s.read(t)
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

// TestFullCollections: what became of samples that were taken before a full collection is in the next listing. Of the
// last ones there is none: they are left out, and counted.
func TestFullCollections(t *testing.T) {
	s := newStream(t)
	s.collection(1, trace.PauseFull, 0, nil, kept)
	s.collection(2, trace.PauseYoung, trace.PauseExact, nil)
	s.sampled(1, 2)
	s.collection(3, trace.PauseFull, 0, nil)
	s.sampled(3)
	s.collection(4, trace.PauseFull, 0, []trace.LiveSample{{ID: 2, Addr: 102, Birth: 3, Size: 16, Interval: 1600}},
		kept, kept)
	s.sampled(4)
	s.collection(5, trace.PauseFull, 0, nil)
	tape := s.read(t)
	lives, found := 0, 0
	for _, x := range tape.Samples {
		found++
		if x.Dead == Never {
			lives++
		}
	}
	each := tape.Samples[0].Weight * 2
	if found != 3 || lives != 1 || tape.LeftOut != uint64(each) {
		t.Errorf("%d samples, %d of them live, %d words left out; want 3, 1 and %.0f", found, lives, tape.LeftOut,
			each)
	}
	var text strings.Builder
	if tape.Make(nil, "type", 0).WriteText(&text); !strings.Contains(text.String(), "left out") {
		t.Errorf("the text does not say so:\n%s", &text)
	}
}
