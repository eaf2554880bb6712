package leak

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

type watchedStream []trace.Block

func (s *watchedStream) Next() (trace.Block, error) {
	if len(*s) == 0 {
		return trace.Block{}, io.EOF
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return b, nil
}

// watchedRecording is a minute of ZGC: a major cycle a second, and in each second samples of two sites. Those of one
// outlive two cycles and stay if leaks says so, else they die after ten more; those of the other never outlive any.
func watchedRecording(leaks bool) *watchedStream {
	return recordedCycles(leaks, 1024, func(i uint64) uint64 { return 50 + i })
}

// recordedCycles is watchedRecording with a heap of so many MiB, and those in use after cycle i.
func recordedCycles(leaks bool, room uint64, used func(i uint64) uint64) *watchedStream {
	const second = 1_000_000_000
	s := watchedStream{
		trace.EncodeMeta(trace.Meta{HasJVM: true, JVM: trace.JVM{ABI: trace.ABIVersion, Major: 25,
			Collector: trace.CollectorZGC, Align: 8, Depth: trace.DepthSamples, Flags: trace.JVMAtStart,
			Interval: 512 << 10, MaxHeap: room << 20}}),
		trace.EncodeDefs(trace.Defs{
			Types: []trace.Type{{ID: 1, Size: 1000, Name: "shop/Order"}, {ID: 2, Size: 1000, Name: "shop/Request"}},
			Methods: []trace.Method{{ID: 1, Class: "Lshop/Orders;", Name: "keep"},
				{ID: 2, Class: "Lshop/Web;", Name: "serve"}},
			Frames: []trace.Frame{{ID: 1, Method: 1}, {ID: 2, Method: 2}},
		}),
	}
	id := func(i, n uint64) uint64 { return 10*i + n + 1 }
	for i := uint64(1); i <= 60; i++ {
		var taken []trace.Sample
		for n := range uint64(4) {
			x := trace.Sample{ID: id(i, n), Time: i*second - second/2 + n, Type: 1, Frame: 1, Size: 1000,
				Interval: 512 << 10, Chances: 1}
			if n > 1 {
				x.Type, x.Frame, x.Chances = 2, 2, 100
			}
			taken = append(taken, x)
		}
		s = append(s, trace.EncodeSamples(taken))
		e := trace.Epoch{Pause: trace.Pause{GC: i, Kind: trace.PauseMajor, Depth: trace.DepthSamples, Start: i * second,
			Dur: 100_000, Interval: 512 << 10}, HasCycle: true,
			Cycle:  trace.Cycle{Begin: i * second, End: i*second + second/10, Pauses: 3},
			Spaces: []trace.Space{{Kind: trace.SpaceHeap, UsedBefore: 100<<20 + i<<20, UsedAfter: used(i) << 20}}}
		if i > 2 {
			e.Survived = []uint64{id(i-2, 0), id(i-2, 1)}
			e.SampleDead = []uint64{id(i-2, 2), id(i-2, 3)}
		}
		if i > 12 && !leaks {
			e.SampleDead = append(e.SampleDead, id(i-12, 0), id(i-12, 1))
		}
		s = append(s, trace.EncodeEpoch(&e))
	}
	return &s
}

// TestWatchedMiss: no site grew by more than was ever in use, however much its watched samples stand for.
func TestWatchedMiss(t *testing.T) {
	h := NewDetector()
	h.watched, h.spaces = true, []spaceUse{{used: 5 << 20}, {used: 3 << 20}}
	r := heap.NewReplay(watchedRecording(true))
	others := []candidate{{key: sites.Key{Class: sites.Class{Name: "byte[]"}},
		growth: growth{grown: 200 << 20, why: whyStopped}}}
	out := h.misses(&r.Cursor, newHeads(r.Symbols), others, nil, nil)
	if len(out) != 1 || out[0].GrownBytes != 5<<20 || !strings.Contains(string(out[0].Sentence), "+5.0 MiB") {
		t.Errorf("%+v", out)
	}
}

// TestWatchedVerdict: the same of a verdict and its members.
func TestWatchedVerdict(t *testing.T) {
	h := NewDetector()
	h.watched, h.spaces, h.Times = true, []spaceUse{{used: 5 << 20}}, []float64{0, 1}
	r := heap.NewReplay(watchedRecording(true))
	s := &structure{growth: growth{grown: 200 << 20}, members: []*part{{grown: 100 << 20}}}
	v := h.verdict(&r.Cursor, s, nil, 1, 1)
	if v.GrownBytes != 5<<20 || v.Members[0].GrownBytes != 5<<20 {
		t.Errorf("%d, %d", v.GrownBytes, v.Members[0].GrownBytes)
	}
}

// TestMissesFiner: what to do next names an interval that is smaller than the one that was used.
func TestMissesFiner(t *testing.T) {
	for interval, want := range map[uint64]ui.Flow{512 << 10: "Record for longer, or with `--sampling 64KiB`.",
		64 << 10: "Record for longer, or with `--sampling 16KiB`.", 1024: "Record for longer."} {
		h := NewDetector()
		h.newest = interval
		r := heap.NewReplay(watchedRecording(true))
		others := []candidate{{growth: growth{grown: 9, why: whyChance}}}
		out := h.misses(&r.Cursor, newHeads(r.Symbols), others, nil, nil)
		if len(out) != 1 || out[0].Next != want {
			t.Errorf("%d: %+v", interval, out)
		}
	}
}

// TestWatchedLeak finds the leak of a recording without addresses, and none in one whose objects stay a while.
func TestWatchedLeak(t *testing.T) {
	l, err := Find(heap.NewReplay(watchedRecording(true)), Options{})
	if err != nil || len(l.Verdicts) != 1 {
		t.Fatalf("%+v, %v", l, err)
	}
	// two samples of 512 KiB a second
	if v := l.Verdicts[0]; v.Class != "shop.Order" || v.Site[0].Method != "keep" || v.BytesPerSecond < 0.7*(1<<20) ||
		v.BytesPerSecond > 1.4*(1<<20) || v.Floors < 10 {
		t.Errorf("%+v", v)
	}
	l, err = Find(heap.NewReplay(watchedRecording(false)), Options{})
	if err != nil || len(l.Verdicts) != 0 {
		t.Fatalf("no leak: %+v, %v", l, err)
	}
	var b bytes.Buffer
	l.WriteText(&b, "")
	if s := b.String(); !strings.Contains(s, "No leak found") || strings.Contains(s, "probability") {
		t.Errorf("how small a leak would have been found is not known:\n%s", s)
	}
}

// TestWatchedFull: a heap of ZGC is full when an allocation failed, or when one cycle after another freed hardly
// anything. Without either, and after one bad cycle, it is not.
func TestWatchedFull(t *testing.T) {
	for _, c := range []struct {
		name   string
		used   func(i uint64) uint64 // MiB of 100 after cycle i of 60
		failed bool
		full   uint64 // the collection that finds it full
	}{
		{"failed", func(i uint64) uint64 { return 30 + i }, true, 60},
		{"cycles", func(i uint64) uint64 { return min(40+i, 95) }, false, 56},
		{"cycles, then failed", func(i uint64) uint64 { return min(40+i, 95) }, true, 60},
		{"one", func(i uint64) uint64 {
			if i == 30 {
				return 99
			}
			return 10 + i
		}, false, 0},
		{"large object", func(i uint64) uint64 { return 5 + i }, true, 60},
	} {
		s := recordedCycles(true, 100, c.used)
		if c.failed {
			*s = append(*s, trace.EncodeMeta(trace.Meta{Exhausted: []trace.Exhausted{{Time: 61e9, Failed: 1}}}))
		}
		l, err := Find(heap.NewReplay(s), Options{})
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case (l.Full != nil) != (c.full > 0), l.Full != nil && l.Full.GC != c.full:
			t.Errorf("%s: %+v", c.name, l.Full)
		case c.full > 0 && (len(l.Verdicts) != 1 || l.Verdicts[0].Kind != KindFills ||
			l.Verdicts[0].Site[0].Method != "keep"):
			t.Errorf("%s: %+v", c.name, l.Verdicts)
		}
	}
}

// TestFullUnnamed: a heap that was full is no heap without a leak, even if nothing shows what filled it.
func TestFullUnnamed(t *testing.T) {
	s := recordedCycles(false, 100, func(i uint64) uint64 { return min(40+i, 95) })
	l, err := Find(heap.NewReplay(s), Options{})
	if err != nil || l.Full == nil || len(l.Verdicts) != 0 || Style(nil, l.Headline) != ui.Doubt ||
		!strings.Contains(string(l.Headline), "The heap was full") {
		t.Errorf("%+v, %v", l, err)
	}
}
