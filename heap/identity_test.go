package heap

import (
	"fmt"
	"testing"

	"github.com/heapcam/heapcam/heap/state"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestIdentity compares the identities that are proven through pauses without object data with a model that knows the
// new place of every object. None may be wrong. In the state before, births are replaced by numbers that are unique for
// each object.
func TestIdentity(t *testing.T) {
	for name, col := range collectors {
		for depth := uint64(trace.DepthSurvivors); depth <= trace.DepthFull; depth++ {
			proven, listed, pauses := 0, 0, 0
			for seed := uint64(1); seed <= 12; seed++ {
				cfg := tracetest.All(seed, col, depth)
				cfg.SampleEvery = []int{4, 16, 100, 1000}[seed%4]
				cfg.Full, cfg.EvacFail = 0.1, 0.15
				m := tracetest.New(cfg)
				r := NewReplay(&blocks{})
				var lastState map[uint64]tracetest.Object
				for i := range 40 {
					var e *tracetest.Epoch
					if i%7 == 6 {
						e = m.FullGC()
					} else {
						e = m.Step(i%5 == 0)
					}
					was := map[uint64]tracetest.Object{}
					asked := false
					for _, b := range e.Blocks {
						if b.Kind == trace.KindEpoch && r.Known {
							for k, o := range lastState {
								was[k] = o
							}
						}
						if b.Kind == trace.KindSync && r.beforePause {
							asked = true
							for k, c := range r.State.Chunks {
								r.State.Tidy(c)
								for j, off := range c.Off {
									o, ok := was[k<<state.ChunkShift|uint64(off)]
									if !ok {
										t.Fatalf("the state holds something at %d that the model does not",
											k<<state.ChunkShift|uint64(off))
									}
									c.SetBirth(j, uint32(o.ID))
								}
							}
						}
						if err := r.handle(b); err != nil {
							t.Fatal(err)
						}
					}
					lastState = e.State
					if !asked {
						continue
					}
					pauses++
					where := fmt.Sprintf("%s/%d seed %d collection %d (kind %d)", name, depth, seed, e.Pause.GC,
						e.Pause.Kind)
					n := 0
					r.State.Each(func(o Object) bool {
						truth := e.State[o.Addr]
						listed++
						switch {
						case truth.Sample != 0:
							if o.AtLeast || uint64(o.Birth) != truth.Born {
								t.Fatalf("%s: a sampled object at %d is born at %d (at least: %v), truth %d", where,
									o.Addr, o.Birth, o.AtLeast, truth.Born)
							}
						case !o.AtLeast:
							proven++
							n++
							if uint64(o.Birth) != truth.ID {
								t.Fatalf("%s: the object at %d is proven to be number %d and is number %d", where,
									o.Addr, o.Birth, truth.ID)
							}
						}
						return true
					})
					if c := r.pending; c == nil || uint64(n) > c.Proven || c.Listed != uint64(len(e.State)) {
						t.Fatalf("%s: %d proven of %d, reported %+v", where, n, len(e.State), c)
					}
					// What comes after is distinguished by births again.
					for _, c := range r.State.Chunks {
						for j := range c.Off {
							c.SetBirth(j, uint32(e.Pause.GC))
						}
					}
				}
			}
			t.Logf("%s/%d: %d of %d objects proven without a sample, %d pauses", name, depth, proven, listed, pauses)
			if pauses < 20 || proven == 0 {
				t.Errorf("%s/%d: %d proven in %d pauses: the test shows nothing", name, depth, proven, pauses)
			}
		}
	}
}
