package heap

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestPlaces folds the state after each collection by sites, from its counts and the samples' lives and from its
// objects: the two must be equal, in the same order. Samples that the recording loses, and such that are at two
// places, must be noticed.
func TestPlaces(t *testing.T) {
	for name, col := range collectors {
		for depth := uint64(trace.DepthSurvivors); depth <= trace.DepthFull; depth++ {
			for _, spoilt := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/%v", name, depth, spoilt), func(t *testing.T) {
					m := tracetest.New(tracetest.All(9, col, depth))
					rng := rand.New(rand.NewPCG(3, col))
					var bs []trace.Block
					for i := range 42 {
						var step []trace.Block
						switch i % 13 {
						case 7:
							step = m.Walk().Blocks
						case 11:
							step = m.FullGC().Blocks
						default:
							step = m.Step(i%5 == 0).Blocks
						}
						for _, b := range step {
							if e, err := trace.DecodeEpoch(b); spoilt && err == nil && b.Kind == trace.KindEpoch {
								lost := func(uint64) bool { return rng.IntN(8) == 0 }
								e.SampleDead = slices.DeleteFunc(e.SampleDead, lost)
								if n := len(e.Resolved); n > 1 && rng.IntN(4) == 0 {
									e.Resolved[n-1].ID = e.Resolved[0].ID
								}
								b = trace.EncodeEpoch(e)
							}
							bs = append(bs, b)
						}
					}
					r, plain := NewReplay(&blocks{slices.Clone(bs)}), NewReplay(&blocks{slices.Clone(bs)})
					lives := &Lives{}
					places := NewPlaces(lives)
					type was struct {
						k  *CountSnapshot
						fs []Folded
					}
					var all []was
					var last *Snapshot
					known := 0
					for {
						c, err := r.Next()
						if _, err2 := plain.Next(); err2 != err {
							t.Fatal(err, err2)
						}
						if err == io.EOF {
							break
						}
						if err != nil {
							t.Fatal(err)
						}
						lives.Follow(r.Samples, c.GC)
						if !c.Known || c.GC%4 == 0 { // some are left out
							continue
						}
						known++
						if c.GC%3 == 0 {
							last = r.Snapshot(c, last)
						}
						if k := r.Count(c, places); k.Sites() {
							fs, err := plain.View().Fold(WantSamples, nil, 1)
							if err != nil {
								t.Fatal(err)
							}
							all = append(all, was{k, fs})
						}
					}
					if !spoilt && len(all) < known || spoilt && len(all) == known || len(all) == 0 {
						t.Errorf("of %d states %d can be folded by sites", known, len(all))
					}
					names := r.Names()
					for _, x := range all {
						fs, err := x.k.View(names, lives).Fold(WantSamples, nil, 1)
						if err != nil {
							t.Fatal(err)
						}
						if !slices.EqualFunc(fs, x.fs, func(a, b Folded) bool {
							same := slices.EqualFunc(a.Samples, b.Samples,
								func(a, b *Sample) bool { return a.ID == b.ID })
							a.Samples, b.Samples = nil, nil
							return same && fmt.Sprint(a) == fmt.Sprint(b)
						}) {
							t.Fatalf("after collection %d: %d combinations, of the objects %d, or others", x.k.C.GC,
								len(fs), len(x.fs))
						}
					}
				})
			}
		}
	}
}
