package heap

import (
	"fmt"
	"io"
	"testing"

	"github.com/heapcam/heapcam/coverage"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestQualityLiveEqualsReplay compares the estimate from the census with the one from every object, after each known
// collection.
func TestQualityLiveEqualsReplay(t *testing.T) {
	compared, walks := 0, 0
	for name, col := range collectors {
		for depth := uint64(trace.DepthSurvivors); depth <= trace.DepthFull; depth++ {
			for seed := uint64(1); seed <= 4; seed++ {
				m := tracetest.New(tracetest.All(seed, col, depth))
				r := NewReplay(&blocks{})
				l := coverage.NewLive(r.Sizes())
				var rec coverage.Recording
				for i := range 36 {
					var e *tracetest.Epoch
					switch i % 9 {
					case 5:
						e = m.Walk()
						walks++
					case 8:
						e = m.FullGC()
					default:
						e = m.Step(i%5 == 0)
					}
					for _, b := range e.Blocks {
						feed(t, l, b)
						if err := r.handle(b); err != nil {
							t.Fatal(err)
						}
						if b.Kind == trace.KindMeta {
							rec.AtStart = r.JVM.Flags&trace.JVMAtStart != 0
						}
						if b.Kind == trace.KindSync {
							feedSync(t, l, b)
						}
						if !r.Known || b.Kind != trace.KindSync && b.Kind != trace.KindEpoch {
							continue
						}
						var live, exact coverage.Totals
						var sites coverage.Sites
						samples := 0
						r.State.Each(func(o Object) bool {
							n := coverage.Count{Objects: 1, Bytes: o.Words * 8}
							live.Add(o.Type, n)
							if o.Sample != 0 {
								exact.Add(o.Type, n)
								sites.Add(o.Type, r.Live.Get(o.Sample).Frame)
								samples++
							}
							return true
						})
						if samples != r.Live.Len() {
							t.Fatalf("%s/%d seed %d collection %d: %d samples live, %d objects are sampled", name,
								depth, seed, r.gc, r.Live.Len(), samples)
						}
						want := rec.After(&live, &exact, &sites)
						got, ok := l.Figure()
						where := fmt.Sprintf("%s/%d seed %d collection %d", name, depth, seed, r.gc)
						if !ok || got != want {
							t.Fatalf("%s: live %+v %v, replay %+v", where, got, ok, want)
						}
						all := got.Live().Objects
						if all != uint64(r.State.Objects()) {
							t.Fatalf("parts add up to %d of %d objects", all, r.State.Objects())
						}
						compared++
					}
				}
				if _, err := r.Next(); err != io.EOF && err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if compared < 200 || walks < 50 {
		t.Fatalf("only %d collections compared", compared)
	}
}

func feed(t *testing.T, l *coverage.Live, b trace.Block) {
	switch b.Kind {
	case trace.KindMeta:
		m, err := trace.DecodeMeta(b)
		if err != nil {
			t.Fatal(err)
		}
		l.JVM(&m.JVM)
	case trace.KindSamples:
		ss, err := trace.DecodeSamples(b)
		if err != nil {
			t.Fatal(err)
		}
		l.Samples(ss)
	case trace.KindEpoch:
		e, err := trace.DecodeEpoch(b)
		if err != nil {
			t.Fatal(err)
		}
		l.Epoch(e)
	case trace.KindGap:
		l.Lost()
	}
}

func feedSync(t *testing.T, l *coverage.Live, b trace.Block) {
	s, err := trace.DecodeSync(b)
	if err == nil {
		err = l.Sync(s)
	}
	if err != nil {
		t.Fatal(err)
	}
}
