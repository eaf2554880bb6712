package heap

import (
	"fmt"
	"io"
	"testing"

	"github.com/heapcam/heapcam/quality"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestQualityLiveEqualsReplay holds the estimate from the census against the one from every object, after each known collection.
func TestQualityLiveEqualsReplay(t *testing.T) {
	compared := 0
	for name, col := range collectors {
		for depth := uint64(trace.DepthSurvivors); depth <= trace.DepthFull; depth++ {
			for seed := uint64(1); seed <= 4; seed++ {
				m := tracetest.New(tracetest.All(seed, col, depth))
				r := NewReplayer(&blocks{})
				l := quality.NewLive(r.table)
				var tape quality.Tape
				for i := range 30 {
					e := m.Step(i%5 == 0)
					for _, b := range e.Blocks {
						feed(t, l, b)
						if err := r.apply(b); err != nil {
							t.Fatal(err)
						}
						if b.Kind == trace.KindMeta {
							tape.AtStart = r.JVM.Flags&trace.JVMAtStart != 0
						}
						if b.Kind == trace.KindSync {
							feedSync(t, l, b)
						}
						if !r.Known || b.Kind != trace.KindSync && b.Kind != trace.KindEpoch {
							continue
						}
						live, exact := map[uint32]quality.Count{}, map[uint32]quality.Count{}
						r.State.Each(func(o Object) bool {
							c := live[o.Type]
							live[o.Type] = quality.Count{Objects: c.Objects + 1, Bytes: c.Bytes + o.Words*8}
							if o.Sample != 0 {
								c := exact[o.Type]
								exact[o.Type] = quality.Count{Objects: c.Objects + 1, Bytes: c.Bytes + o.Words*8}
							}
							return true
						})
						want := tape.After(live, exact)
						got, ok := l.Quality()
						if where := fmt.Sprintf("%s/%d seed %d collection %d", name, depth, seed, r.gc); !ok || got != want {
							t.Fatalf("%s: live %+v %v, replay %+v", where, got, ok, want)
						}
						all := got.Exact.Objects + got.Before.Objects + got.Unknown.Objects
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
	if compared < 200 {
		t.Fatalf("only %d collections compared", compared)
	}
}

func feed(t *testing.T, l *quality.Live, b trace.Block) {
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

func feedSync(t *testing.T, l *quality.Live, b trace.Block) {
	s, err := trace.DecodeSync(b)
	if err == nil {
		err = l.Sync(s)
	}
	if err != nil {
		t.Fatal(err)
	}
}
