package leak

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/heap"
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
	const second = 1_000_000_000
	s := watchedStream{
		trace.EncodeMeta(trace.Meta{HasJVM: true, JVM: trace.JVM{ABI: trace.ABIVersion, Major: 25,
			Collector: trace.CollectorZGC, Align: 8, Depth: trace.DepthSamples, Flags: trace.JVMAtStart,
			Interval: 512 << 10, MaxHeap: 1 << 30}}),
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
			Spaces: []trace.Space{{Kind: trace.SpaceHeap, UsedBefore: 100<<20 + i<<20, UsedAfter: 50<<20 + i<<20}}}
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
