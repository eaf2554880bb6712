package whatif

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/lifetimes"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
	"pgregory.net/rapid"
)

func randomG1(t *rapid.T) Config {
	region := rapid.Uint64Range(16, 400).Draw(t, "region")
	regions := rapid.Uint64Range(4, 60).Draw(t, "regions")
	most := rapid.Uint64Range(1, regions-2).Draw(t, "most")
	return Config{Collector: trace.CollectorG1, Eden: most * region, Old: (regions - most) * region,
		Threshold: rapid.IntRange(0, 15).Draw(t, "threshold"), Regional: Regional{Region: region,
			Least: rapid.Uint64Range(1, most).Draw(t, "least") * region,
			IHOP:  rapid.Float64Range(0, 1).Draw(t, "ihop"), Goal: 0.2,
			PerWord: rapid.Float64Range(0, 0.01).Draw(t, "cost")}}
}

// TestG1Conserves: after each collection of G1 all that lives is in the heap, a full one leaves nothing else, and the
// heap is not larger than it may be.
func TestG1Conserves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, c := randomInput(t), randomG1(t)
		o := Simulate(in, c, 1)
		if o2 := Simulate(in, c, 1); !reflect.DeepEqual(o, o2) {
			t.Fatal("the same seed gives two outcomes")
		}
		last := uint64(0)
		for n, s := range o.Steps {
			if s.After > s.Before || s.At < last || s.Copied+s.Promoted > s.Before {
				t.Fatalf("%+v after %d", s, last)
			}
			last = s.At
			live := uint64(0)
			for i := range in.Born {
				if (i < in.Initial || in.Born[i] < s.At) && in.Died[i] > s.At {
					live += uint64(in.Words[i])
				}
			}
			if s.After < live || s.Full && s.After != live {
				t.Fatalf("%d words live, %+v", live, s)
			}
			fails := n >= len(o.Steps)-2 && o.Exhausted != Never
			if follows := n+1 < len(o.Steps) && o.Steps[n+1].Full; s.After > c.heap() && !fails && !follows {
				t.Fatalf("%d words in a heap of %d", s.After, c.heap())
			}
		}
		if o.Minor+o.Full != len(o.Steps) {
			t.Fatalf("%+v", o)
		}
	})
}

// TestG1Edges: inputs and sizes at the ends of what there is.
func TestG1Edges(t *testing.T) {
	steady := func(n int, words uint32, died func(i int, born uint64) uint64) *Input {
		in := &Input{End: uint64(n) * uint64(words)}
		for i := range n {
			b := uint64(i) * uint64(words)
			in.Born, in.Died, in.Words = append(in.Born, b), append(in.Died, died(i, b)), append(in.Words, words)
		}
		return in
	}
	never := func(int, uint64) uint64 { return Never }
	atOnce := func(_ int, b uint64) uint64 { return b + 1 }
	c := Config{Collector: trace.CollectorG1, Eden: 2000, Old: 8000, Threshold: 15,
		Regional: Regional{Region: 500, Least: 2000, IHOP: g1IHOP, Goal: g1Goal}}
	if o := Simulate(&Input{}, c, 1); o.Minor+o.Full != 0 || o.Exhausted != Never {
		t.Errorf("nothing: %+v", o)
	}
	if o := Simulate(steady(1000, 10, atOnce), c, 1); o.Minor != 5 || o.Full != 0 || o.Copied+o.Promoted != 0 {
		t.Errorf("all dead: %+v", o)
	}
	if o := Simulate(steady(5000, 10, never), c, 1); o.Exhausted == Never || o.Full == 0 {
		t.Errorf("no death: %+v", o)
	}
	// Objects that live long enough to be promoted: mixed collections keep old space small, without a full one.
	slow := func(i int, b uint64) uint64 {
		if i%10 == 0 {
			return b + 12_000
		}
		return b + 1
	}
	c.Threshold = 1
	o := Simulate(steady(20_000, 10, slow), c, 1)
	if o.Full != 0 || o.Exhausted != Never || o.OldMost > 6500 || o.Promoted == 0 {
		t.Errorf("mixed collections: %d full, at most %d in old space, exhausted at %d", o.Full, o.OldMost, o.Exhausted)
	}
	c.IHOP = 2 // marking never begins
	if o := Simulate(steady(20_000, 10, slow), c, 1); o.Full == 0 {
		t.Errorf("without marking: %d full", o.Full)
	}
	c.IHOP = g1IHOP
	// A humongous object takes whole regions, and goes when it is dead.
	large := steady(200, 600, func(_ int, b uint64) uint64 { return b + 1500 })
	if o := Simulate(large, c, 1); o.Minor == 0 || o.Copied+o.Promoted != 0 || o.Exhausted != Never {
		t.Errorf("humongous: %+v", o)
	}
	if o := Simulate(steady(1, 20_000, never), c, 1); o.Exhausted != 0 {
		t.Errorf("larger than the heap: %+v", o)
	}
}

// TestG1Model: recordings of G1 are predicted, and of those of other collectors a heap of G1; both say that this is an
// approximation. An old space cannot be asked for.
func TestG1Model(t *testing.T) {
	defer func(n float64) { made = n }(made)
	made = 1 << 12
	for _, depth := range []uint64{trace.DepthSurvivors, trace.DepthFull} {
		for collector := uint64(trace.CollectorSerial); collector <= trace.CollectorG1; collector++ {
			blocks := analysistest.Recording(depth, collector, depth, 80)
			tape, err := lifetimes.Read(heap.NewReplay(&analysistest.Source{B: blocks}))
			if err != nil {
				t.Fatal(err)
			}
			m, err := New(tape)
			if err != nil {
				t.Fatal(err)
			}
			q := Request{Tenuring: -1, Collector: trace.CollectorG1, Heap: []uint64{64 << 20}}
			r, err := m.Answer(context.Background(), q, nil)
			if err != nil || len(r.Warnings) == 0 || r.Configurations[0].Collector != "G1" {
				t.Fatalf("collector %d: %v, %+v", collector, err, r)
			}
			q.Old = []uint64{1 << 20}
			if _, err := m.Answer(context.Background(), q, nil); !errors.Is(err, ErrG1) {
				t.Errorf("with an old space: %v", err)
			}
			if collector == trace.CollectorG1 && r.Check.Recorded.Collector != "G1" {
				t.Errorf("%+v", r.Check)
			}
		}
	}
}
