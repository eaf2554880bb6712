package quota

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/heapcam/heapcam/trace"
)

// TestTotalRate: JVMs that want to write many times what all may together are lowered until they stay within it;
// small ones keep their depth, none is forgotten, and when the large ones are gone the others get their depth back.
func TestTotalRate(t *testing.T) {
	const limit = 1 << 20
	type jvm struct {
		r       RateLimit
		full    float64 // bytes a second at depth full
		depth   uint64
		written float64
		gone    bool
	}
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 1))
		shared := NewSharedRate("max_total_write_rate", limit)
		var js []*jvm
		for i := range 12 {
			j := &jvm{r: RateLimit{shared: shared}, full: 5e3 * (1 + r.Float64()), depth: trace.DepthFull} // small
			if i%2 == 0 {
				j.full = 2e6 * (1 + r.Float64())
			}
			js = append(js, j)
		}
		now := time.Unix(1, 0)
		run := func(seconds int) (over, mean float64) { // spans of 10 s above the limit, a share; bytes a second
			before, from, spans := -1.0, 0.0, 0.0
			for i := range seconds * 10 {
				now = now.Add(100 * time.Millisecond)
				for _, j := range js {
					if j.gone {
						continue
					}
					j.written += 0.1 * j.full * map[uint64]float64{trace.DepthSamples: 0.005,
						trace.DepthSurvivors: 0.08, trace.DepthFull: 1}[j.depth] * (0.7 + 0.6*r.Float64())
					if d, change := j.r.Observe(now, int64(j.written), j.depth); change {
						if d < trace.DepthSamples || d > trace.DepthFull || j.r.Cause().Key != "max_total_write_rate" {
							t.Fatalf("depth %d for the sake of %+v", d, j.r.Cause())
						}
						j.depth = d
					}
				}
				if i%100 == 99 { // ten seconds
					all := 0.0
					for _, j := range js {
						all += j.written
					}
					if before < 0 {
						from = all
					} else if spans++; all-before > 10*limit {
						over++
					}
					before = all
				}
			}
			return over / spans, (before - from) / 10 / spans
		}
		run(60)
		// a depth that was too much is tried again, for ten seconds
		if over, mean := run(1800); over > 0.05 || mean > limit {
			t.Errorf("seed %d: together they write %.0f bytes a second, may %d, and %.0f %% of the spans more",
				seed, mean, limit, 100*over)
		}
		for i, j := range js {
			if i%2 == 1 && j.depth != trace.DepthFull {
				t.Errorf("seed %d: a JVM that writes %.0f bytes a second is at depth %d", seed, j.full, j.depth)
			}
			if i%2 == 0 && i > 0 {
				j.gone = true
				shared.Leave(&j.r)
			}
		}
		js[0].full = 2e5 // what is left may go on as it asked
		run(1200)
		if js[0].depth != trace.DepthFull {
			t.Errorf("seed %d: alone, the JVM stays at depth %d", seed, js[0].depth)
		}
	}
}

// TestPart: what is not used falls to those who want more, each the same part.
func TestPart(t *testing.T) {
	a, b, c := &RateLimit{}, &RateLimit{}, &RateLimit{}
	s, now := NewSharedRate("x", 900), time.Unix(1, 0)
	if n := s.part(a, now, 5000); n != 900 {
		t.Errorf("alone: %d", n)
	}
	if n := s.part(b, now, 5000); n != 450 {
		t.Errorf("beside another: %d", n)
	}
	if n := s.part(c, now, 100); n != 300 {
		t.Errorf("the third: %d", n)
	}
	if n := s.part(a, now, 5000); n != 400 {
		t.Errorf("beside one that wants more and one that does not: %d", n)
	}
	s.Leave(b)
	if n := s.part(a, now, 5000); n != 800 {
		t.Errorf("when one has left: %d", n)
	}
	if n := s.part(a, now.Add(time.Minute), 5000); n != 900 {
		t.Errorf("when nothing was heard of the other: %d", n)
	}
}
