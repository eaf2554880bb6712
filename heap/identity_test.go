package heap

import (
	"fmt"
	"testing"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
	"pgregory.net/rapid"
)

// TestIdentity holds what is proven through pauses without fates against a model that knows where every object went: none may be wrong. The
// births of the state before are replaced by the objects' own numbers, so that each object is told from all others.
func TestIdentity(t *testing.T) {
	for name, col := range collectors {
		for depth := uint64(trace.DepthSurvivors); depth <= trace.DepthFull; depth++ {
			proven, listed, pauses := 0, 0, 0
			for seed := uint64(1); seed <= 12; seed++ {
				cfg := tracetest.All(seed, col, depth)
				cfg.SampleEvery = []int{4, 16, 100, 1000}[seed%4]
				cfg.Full, cfg.EvacFail = 0.1, 0.15
				m := tracetest.New(cfg)
				r := NewReplayer(&blocks{})
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
						if b.Kind == trace.KindSync && r.was {
							asked = true
							for k, c := range r.State.chunks {
								r.State.tidy(c)
								for j, off := range c.off {
									o, ok := was[k<<chunkShift|uint64(off)]
									if !ok {
										t.Fatalf("the state holds something at %d that the model does not", k<<chunkShift|uint64(off))
									}
									c.setBirth(j, uint32(o.ID))
								}
							}
						}
						if err := r.apply(b); err != nil {
							t.Fatal(err)
						}
					}
					lastState = e.State
					if !asked {
						continue
					}
					pauses++
					where := fmt.Sprintf("%s/%d seed %d collection %d (kind %d)", name, depth, seed, e.Pause.GC, e.Pause.Kind)
					n := 0
					r.State.Each(func(o Object) bool {
						truth := e.State[o.Addr]
						listed++
						switch {
						case truth.Sample != 0:
							if o.AtLeast || uint64(o.Birth) != truth.Born {
								t.Fatalf("%s: a sampled object at %d is born at %d (at least: %v), truth %d", where, o.Addr, o.Birth, o.AtLeast, truth.Born)
							}
						case !o.AtLeast:
							proven++
							n++
							if uint64(o.Birth) != truth.ID {
								t.Fatalf("%s: the object at %d is proven to be number %d and is number %d", where, o.Addr, o.Birth, truth.ID)
							}
						}
						return true
					})
					if c := r.pending; c == nil || uint64(n) > c.Proven || c.Listed != uint64(len(e.State)) {
						t.Fatalf("%s: %d proven of %d, told %+v", where, n, len(e.State), c)
					}
					// What comes after is told by births again.
					for _, c := range r.State.chunks {
						for j := range c.off {
							c.setBirth(j, uint32(e.Pause.GC))
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

// TestSlide does the same on old spaces of few kinds of objects, in which nearly everything could be anything: dead wood is left at the bottom
// under fillers, and young objects of the same kinds come behind.
func TestSlide(t *testing.T) {
	const ints, text, node, pad, base = 1, 2, 3, 4, 1000
	proven, listed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		r := NewReplayer(&blocks{})
		r.JVM = trace.JVM{Collector: trace.CollectorSerial, Major: rapid.SampledFrom([]uint64{17, 25}).Draw(t, "major")}
		for _, ty := range []trace.Type{{ID: ints, Name: "[I", Flags: trace.TypeArray, Size: 16, Log2: 2}, {ID: text, Name: "T", Size: 16}, {ID: node, Name: "N", Size: 24},
			{ID: pad, Name: "jdk/internal/vm/FillerArray", Size: 16, Log2: 2, Flags: trace.TypeFiller | trace.TypeArray}} {
			r.Types[ty.ID] = ty
			if err := r.table.Define(ty); err != nil {
				t.Fatal(err)
			}
		}
		object := func() Object {
			o := Object{Type: rapid.Uint32Range(ints, node).Draw(t, "type"), Words: 2}
			if o.Type == node {
				o.Words = 3
			}
			return o
		}
		type fate struct {
			Object
			dead bool
			id   uint32 // 0: from young space
		}
		var all []fate
		dying := rapid.IntRange(0, 9).Draw(t, "dying")
		sampling := rapid.SampledFrom([]int{2, 5, 30}).Draw(t, "sampling")
		at := uint64(base)
		for i := range rapid.IntRange(0, 60).Draw(t, "old") {
			f := fate{object(), rapid.IntRange(0, 9).Draw(t, "dies") < dying, uint32(i + 1)}
			f.Addr, f.Birth = at, f.id
			if rapid.IntRange(0, sampling).Draw(t, "sampled") == 0 {
				f.Sample = uint64(i + 1)
			}
			at += f.Words
			r.State.add(f.Object)
			all = append(all, f)
		}
		r.Known, r.gc = true, 999
		old := at - base
		young := uint64(0)
		wood := rapid.IntRange(0, len(all)).Draw(t, "wood") // so many stay where they are, the dead under fillers
		for range rapid.IntRange(0, 12).Draw(t, "young") {
			all = append(all, fate{Object: object()})
			young += all[len(all)-1].Words
		}
		next := newState()
		next.codes = r.State.codes
		s := &trace.Sync{GC: 1000}
		truth := map[uint64]fate{}
		at = base
		fill := func(to uint64) {
			if to-at < 2 {
				at = to
				return
			}
			f := Object{Addr: at, Type: pad, Length: (to - at - 2) * 2, Words: to - at}
			if r.JVM.Major == 17 {
				f.Type = ints
			}
			next.add(f)
			at = to
		}
		for i, f := range all {
			if f.dead {
				continue
			}
			if i < wood {
				fill(f.Addr)
			}
			was := f.Object
			f.Addr = at
			f.Birth, f.AtLeast, f.Sample = 1000, true, 0
			next.add(f.Object)
			truth[at] = f
			if was.Sample != 0 {
				s.Samples = append(s.Samples, trace.LiveSample{ID: was.Sample, Addr: at})
			}
			at += f.Words
		}
		garbage := rapid.Uint64Range(0, 30).Draw(t, "garbage")
		s.Spaces = []trace.Space{{Kind: trace.SpaceOld, Bottom: base, Top: at, End: 10000}}
		c := &Collection{Spaces: []trace.Space{{Kind: trace.SpaceEden, UsedBefore: (young + garbage) * 8}, {Kind: trace.SpaceOld, Bottom: base, Top: at, End: 10000, UsedBefore: old * 8}}}
		c.Kind = trace.PauseFull
		had := r.State
		r.identify(s, c, had, next)
		n := 0
		next.Each(func(o Object) bool {
			f, ok := truth[o.Addr]
			if !ok { // a filler
				return true
			}
			listed++
			if !o.AtLeast {
				n++
				if f.id != o.Birth {
					t.Fatalf("at %d: proven to be %d, is %d", o.Addr, o.Birth, f.id)
				}
			} else if f.id > o.Birth && f.id != 0 {
				t.Fatalf("at %d: at least as old as %d, is %d", o.Addr, o.Birth, f.id)
			} else if f.id == 0 && o.Birth != 1000 {
				t.Fatalf("at %d: a young object is told to be as old as %d", o.Addr, o.Birth)
			}
			return true
		})
		if uint64(n) != c.Proven {
			t.Fatalf("%d proven, told %d", n, c.Proven)
		}
		proven += n
	})
	t.Logf("%d of %d proven", proven, listed)
	if proven*10 < listed {
		t.Errorf("%d of %d proven", proven, listed)
	}
}
