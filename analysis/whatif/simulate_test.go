package whatif

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/lifetimes"
	"github.com/heapcam/heapcam/trace"
	"pgregory.net/rapid"
)

// TestConservation: after each collection the words in use are those before it without what died, and what a young
// collection keeps is in the survivor space or in old space.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, c := randomInput(t), randomConfig(t)
		o := Simulate(in, c, 1)
		allocated := uint64(0)
		for _, s := range o.Steps {
			if s.After > s.Before {
				t.Fatalf("a collection made words: %+v", s)
			}
			if s.At < allocated {
				t.Fatalf("time went back: %+v", s)
			}
			allocated = s.At
			if s.Copied > c.Survivor || s.Copied+s.Promoted > s.Before {
				t.Fatalf("%+v copies more than there is", s)
			}
			live := uint64(0) // at least what lives, at most what was allocated, is in the heap
			for i := range in.Born {
				if (i < in.Initial || in.Born[i] < s.At) && in.Died[i] > s.At {
					live += uint64(in.Words[i])
				}
			}
			if s.After < live || s.Full && s.After != live {
				t.Fatalf("%d words live, %+v", live, s)
			}
		}
	})
}

// TestMonotony: with a larger old space there are no more full collections, and with a larger eden no more young ones,
// where nothing is promoted in between.
func TestMonotony(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	in := &Input{}
	now := uint64(0)
	for range 200_000 {
		life := rng.Uint64N(300)
		if rng.IntN(50) == 0 {
			life = rng.Uint64N(400_000)
		}
		in.Born, in.Died, in.Words = append(in.Born, now), append(in.Died, now+1+life), append(in.Words, 5)
		now += 5
	}
	in.End = now
	for _, gc := range []uint64{trace.CollectorSerial, trace.CollectorParallel} {
		last := 1 << 30
		for _, old := range []uint64{20_000, 30_000, 60_000, 120_000, 400_000} {
			o := Simulate(in, Config{Collector: gc, Eden: 20_000, Survivor: 8192, Old: old, Threshold: 3}, 1)
			if o.Exhausted != Never || o.Full > last {
				t.Errorf("collector %d, old space of %d: %d full collections, %d with less; exhausted at %d", gc, old,
					o.Full,
					last, o.Exhausted)
			}
			last = o.Full
		}
		if last > 1 {
			t.Errorf("%d full collections with room for all", last)
		}
		last = 1 << 30
		for _, eden := range []uint64{5000, 10_000, 20_000, 40_000, 2_000_000} {
			o := Simulate(in, Config{Collector: gc, Eden: eden, Survivor: 8192, Old: 400_000, Threshold: 3}, 1)
			if o.Minor > last {
				t.Errorf("collector %d, eden of %d: %d young collections, %d with less", gc, eden, o.Minor, last)
			}
			last = o.Minor
		}
		if last != 0 {
			t.Errorf("%d collections in an eden that holds everything", last)
		}
	}
}

// TestEdges: inputs and sizes at the ends of what there is.
func TestEdges(t *testing.T) {
	make := func(n int, died func(born uint64) uint64) *Input {
		in := &Input{End: uint64(10 * n)}
		for i := range n {
			b := uint64(10 * i)
			in.Born, in.Died, in.Words = append(in.Born, b), append(in.Died, died(b)), append(in.Words, 10)
		}
		return in
	}
	never := func(uint64) uint64 { return Never }
	atOnce := func(b uint64) uint64 { return b + 1 }
	for _, gc := range []uint64{trace.CollectorSerial, trace.CollectorParallel} {
		c := Config{Collector: gc, Eden: 1000, Survivor: 8192, Old: 20_000, Threshold: 2}
		if o := Simulate(&Input{}, c, 1); o.Minor+o.Full != 0 || o.Exhausted != Never {
			t.Errorf("nothing: %+v", o)
		}
		if o := Simulate(make(1000, atOnce), c, 1); o.Minor != 10 || o.Full != 0 || o.Copied+o.Promoted != 0 {
			t.Errorf("all dead: %+v", o)
		}
		if o := Simulate(make(5000, never), c, 1); o.Exhausted == Never || o.Full == 0 {
			t.Errorf("no death: %+v", o)
		}
		c.Threshold = 0
		if o := Simulate(make(500, never), c, 1); o.Copied != 0 || o.Promoted != 5000 {
			t.Errorf("threshold 0: %+v", o)
		}
		c.Threshold = 15
		if o := Simulate(make(500, never), c, 1); o.Promoted != 0 || o.Copied != 1000+2000+3000+4000+5000 {
			t.Errorf("threshold 15: %+v", o)
		}
		c.Survivor = 0
		if o := Simulate(make(500, never), c, 1); o.Promoted != 5000 || o.Copied != 0 {
			t.Errorf("overflow: %+v", o)
		}
		large := &Input{Born: []uint64{0}, Died: []uint64{Never}, Words: []uint32{5000}, End: 5000}
		if o := Simulate(large, c, 1); o.Minor+o.Full != 0 || o.OldMost != 5000 {
			t.Errorf("larger than eden: %+v", o)
		}
		large.Words[0], large.End = 30_000, 30_000
		if o := Simulate(large, c, 1); o.Exhausted != 0 {
			t.Errorf("larger than old space: %+v", o)
		}
	}
}

// TestThreshold: the tenuring threshold is found where survivors do not fit, and in spite of a few wrong ages.
func TestThreshold(t *testing.T) {
	m := Model{tape: &lifetimes.Tape{}}
	m.tape.JVM.Collector = trace.CollectorParallel
	if n := m.threshold(); n != 15 {
		t.Errorf("%d of nothing", n)
	}
	copy(m.tape.Kept[:], []uint64{5208171, 1648896, 1170378, 201178, 138, 94})
	copy(m.tape.Tenured[:], []uint64{6374794, 274810, 13855, 184513, 125666, 44, 94})
	if n := m.threshold(); n != 4 {
		t.Errorf("%d, is 4", n)
	}
	m.tape.Kept = [16]uint64{}
	if n := m.threshold(); n != 0 {
		t.Errorf("%d, is 0", n)
	}
	m.tape.JVM.Collector = trace.CollectorSerial
	if n := m.threshold(); n != 15 {
		t.Errorf("Serial: %d", n)
	}
}

// TestAdvice: the smallest heap that halves the time is named, and none if the model does not fit.
func TestAdvice(t *testing.T) {
	m := Model{tape: &lifetimes.Tape{Epochs: []lifetimes.Epoch{{Kind: trace.PauseYoung, Pause: 1e9}}}}
	p := func(heap uint64, value, high float64) Prediction {
		return Prediction{Heap: heap, GCSeconds: Span{value, value, high}, config: Config{Eden: 1, Old: 1}}
	}
	r := &Report{Seconds: 10, Check: Check{Fits: true},
		Configurations: []Prediction{p(100, 0.4, 0.6), p(300, 0.1, 0.1), p(200, 0.3, 0.5)}}
	if a := m.advice(r); a == nil || a.Heap != 200 || a.Before != 1 {
		t.Errorf("%+v", a)
	}
	r.Seconds = 100
	if a := m.advice(r); a != nil {
		t.Errorf("1 %% of the time: %+v", a)
	}
	r.Seconds, r.Check.Fits = 10, false
	if a := m.advice(r); a != nil {
		t.Errorf("no fit: %+v", a)
	}
}

// TestGoal reads goals, and picks the smallest heap that meets one.
func TestGoal(t *testing.T) {
	if g, err := ParseGoal("pause=50ms, gc=2%"); err != nil || g != (Goal{0.05, 0.02}) {
		t.Errorf("%+v, %v", g, err)
	}
	for _, bad := range []string{"", "pause", "pause=0s", "gc=2", "gc=0%", "heap=1g", "pause=1s,,"} {
		if g, err := ParseGoal(bad); err == nil {
			t.Errorf("%q is %+v", bad, g)
		}
	}
	p := func(heap uint64, share float64) Prediction {
		c := Config{Collector: trace.CollectorParallel, Eden: 18 << 17, Survivor: 3 << 17, Old: 26 << 17, Threshold: 4}
		return Prediction{Heap: heap, GCShare: Span{share, share, share}, GCSeconds: Span{share, share, share},
			config: c}
	}
	ps := []Prediction{p(400, 0.01), p(100, 0.05), p(200, 0.02), p(300, 0.015)}
	a := Goal{GC: 0.02}.Answer(ps)
	if !a.Met || a.Best.Heap != 200 {
		t.Errorf("%+v", a)
	}
	for _, flag := range []string{"-XX:+UseParallelGC", "-Xmx51200k", "-Xmn24576k", "-XX:SurvivorRatio=6",
		"-XX:MaxTenuringThreshold=4"} {
		if !strings.Contains(a.Flags, flag) {
			t.Errorf("%s is not in %s", flag, a.Flags)
		}
	}
	if a := (Goal{GC: 0.001}).Answer(ps); a.Met || a.Best.Heap != 400 {
		t.Errorf("%+v", a)
	}
	MarkPareto(ps)
	for i := range ps {
		if !ps[i].Pareto {
			t.Errorf("heap of %d is not marked", ps[i].Heap)
		}
	}
	ps = append(ps, p(500, 0.01))
	if MarkPareto(ps); ps[4].Pareto {
		t.Error("a larger heap with as much time in collections is marked")
	}
}

// BenchmarkSimulate gives objects a second, of one goroutine.
func BenchmarkSimulate(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 4))
	in := &Input{}
	now := uint64(0)
	const n = 4 << 20
	for range n {
		life := rng.Uint64N(3000)
		if rng.IntN(50) == 0 {
			life = rng.Uint64N(4_000_000)
		}
		in.Born, in.Died, in.Words = append(in.Born, now), append(in.Died, now+1+life), append(in.Words, 5)
		now += 5
	}
	in.End = now
	c := Config{Collector: trace.CollectorParallel, Eden: 500_000, Survivor: 65_536, Old: 1_000_000, Threshold: 4}
	b.ResetTimer()
	for b.Loop() {
		Simulate(in, c, 1)
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mobjects/s")
}
