package tracetest

import (
	"fmt"
	"os"
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// TestReaderFollowsModel replays random streams of every collector and depth with the plainest reader and holds the
// state after each epoch against the truth: objects, samples, identity, census.
func TestReaderFollowsModel(t *testing.T) {
	seeds := uint64(12)
	if os.Getenv("HEAPCAM_FULL") == "1" {
		seeds = 500
	}
	for _, col := range []uint64{trace.CollectorSerial, trace.CollectorParallel, trace.CollectorG1} {
		for _, depth := range []uint64{trace.DepthSurvivors, trace.DepthFull} {
			t.Run(fmt.Sprintf("%s-%s", trace.CollectorNames.String(col), trace.DepthNames.String(depth)),
				func(t *testing.T) {
					var moved, kinds, exact = 0, map[uint64]int{}, 0
					for seed := range seeds {
						cfg := All(seed, col, depth)
						cfg.Eden = 512 << (seed % 4)
						if seed%3 == 2 {
							cfg.Align = 16
						}
						m, r, ids := New(cfg), NewReader(), map[uint64]uint64{}
						for step := range 60 {
							var ep *Epoch
							switch step % 20 {
							case 11:
								ep = m.Walk()
							case 17:
								ep = m.FullGC()
							default:
								ep = m.Step(step%7 == 0)
							}
							kinds[ep.Pause.Kind]++
							if ep.Pause.Flags&trace.PauseExact != 0 {
								exact++
							}
							for _, b := range ep.Blocks {
								if err := r.Apply(b); err != nil {
									t.Fatalf("seed %d step %d %v: %v", seed, step, b.Kind, err)
								}
								if b.Kind == trace.KindSync && r.Mismatch != "" {
									t.Fatalf("seed %d step %d: %s", seed, step, r.Mismatch)
								}
							}
							if why := r.Compare(ep, ids); why != "" {
								t.Fatalf("seed %d step %d kind %s: %s", seed, step,
									trace.PauseKindNames.String(ep.Pause.Kind), why)
							}
							for _, o := range ep.State {
								if o.Age > 1 {
									moved++
								}
							}
						}
					}
					// The test proves nothing if the model makes nothing.
					want := []uint64{trace.PauseYoung, trace.PauseFull, trace.PauseWalk}
					if col == trace.CollectorG1 {
						want = append(want, trace.PauseMixed, trace.PauseRemark, trace.PauseCleanup)
					}
					for _, k := range want {
						if kinds[k] == 0 {
							t.Errorf("no pause of kind %s", trace.PauseKindNames.String(k))
						}
					}
					if moved == 0 || exact == 0 {
						t.Errorf("%d old objects, %d exact epochs", moved, exact)
					}
				})
		}
	}
}

// TestSameSeedSameStream: what fails must fail again.
func TestSameSeedSameStream(t *testing.T) {
	for _, col := range []uint64{trace.CollectorSerial, trace.CollectorParallel, trace.CollectorG1} {
		a, b := New(All(7, col, trace.DepthFull)), New(All(7, col, trace.DepthFull))
		for step := range 30 {
			x, y := a.Step(step%5 == 0), b.Step(step%5 == 0)
			if len(x.Blocks) != len(y.Blocks) {
				t.Fatalf("step %d: %d and %d blocks", step, len(x.Blocks), len(y.Blocks))
			}
			for i := range x.Blocks {
				if !x.Blocks[i].Equal(y.Blocks[i]) {
					t.Fatalf("step %d: block %d differs", step, i)
				}
			}
		}
	}
}

// TestBrokenStreamIsNoticed: the comparison itself must be able to fail.
func TestBrokenStreamIsNoticed(t *testing.T) {
	m, r, ids := New(Config{Seed: 1}), NewReader(), map[uint64]uint64{}
	noticed := false
	for step := range 20 {
		ep := m.Step(false)
		for _, b := range ep.Blocks {
			if b.Kind == trace.KindEpoch && step == 10 {
				continue // lost without a word
			}
			if r.Apply(b) != nil {
				noticed = true
			}
		}
		if r.Compare(ep, ids) != "" {
			noticed = true
		}
	}
	if !noticed {
		t.Fatal("a missing epoch went unnoticed")
	}
}
