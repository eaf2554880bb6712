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

// TestModes: each mode predicts random recordings, the same twice with the same seeds, and loses no bytes.
func TestModes(t *testing.T) {
	for collector := uint64(trace.CollectorSerial); collector <= trace.CollectorParallel; collector++ {
		for depth := uint64(trace.DepthSurvivors); depth <= trace.DepthFull; depth++ {
			src := &analysistest.Source{B: analysistest.Recording(depth, collector, depth, 60)}
			tape, err := lifetimes.Read(heap.NewReplay(src))
			if err != nil {
				t.Fatal(err)
			}
			m, err := New(tape)
			if err != nil {
				t.Fatal(err)
			}
			for _, mode := range Modes {
				h := How{Mode: mode, Seeds: 2, Given: Probabilities{-1, -1}}
				configs := []Config{m.Recorded}
				a, err := m.Predict(context.Background(), h, configs, nil)
				if err != nil {
					t.Fatal(err)
				}
				b, _ := m.Predict(context.Background(), h, configs, nil)
				if !reflect.DeepEqual(a, b) {
					t.Errorf("%s: the same seeds give two predictions", mode)
				}
				if p := a[0]; p.Minor.Value+p.Full.Value == 0 && !p.TooSmall {
					t.Errorf("collector %d, depth %d, %s: no collections", collector, depth, mode)
				}
			}
		}
	}
}

// TestShares: without objects, too, no words are made or lost, and more survivors mean more promotions.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.Float64Range(0, 1)
		s := &shares{eden: []float64{share.Draw(t, "marked")}, old: []float64{share.Draw(t, "old")}}
		for age := range s.kept {
			s.kept[age] = survival{1, share.Draw(t, "survived")}
		}
		c := randomConfig(t)
		o := simulateShares(s, c, 0, 20_000, 5, 1)
		promoted := uint64(0)
		for _, step := range o.Steps {
			promoted += step.Promoted
			if step.After > step.Before+1 || step.Copied > c.Survivor || step.Copied+step.Promoted > step.Before {
				t.Fatalf("%+v: %+v", c, step)
			}
		}
		if promoted != o.Promoted || o.Minor+o.Full != len(o.Steps) {
			t.Fatalf("%+v", o)
		}
		if s.eden[0] == 0 && (o.Promoted > 0 || o.Full > 0) {
			t.Fatalf("nothing survives: %+v", o)
		}
	})
}

// randomTape is what a recording that was made up may contain: numbers that contradict each other.
func randomTape(t *rapid.T) *lifetimes.Tape {
	tape := &lifetimes.Tape{By: map[uint32]*lifetimes.Group{}}
	number := rapid.OneOf(rapid.Uint64Range(0, 1<<16), rapid.Uint64Range(0, 1<<30), rapid.Uint64())
	tape.JVM.Collector = rapid.Uint64Range(0, 4).Draw(t, "collector")
	tape.JVM.MaxHeap, tape.JVM.RegionWords = number.Draw(t, "heap"), number.Draw(t, "region")
	tape.JVM.Major = rapid.Uint64Range(0, 30).Draw(t, "major")
	for range rapid.IntRange(0, 8).Draw(t, "epochs") {
		e := lifetimes.Epoch{Kind: rapid.Uint64Range(0, 6).Draw(t, "kind"), Exact: rapid.Bool().Draw(t, "exact")}
		for _, to := range []*uint64{&e.At, &e.Begin, &e.Mutator, &e.Pause, &e.Eden, &e.Survivor, &e.Old, &e.EdenBefore,
			&e.SurvivorBefore, &e.OldBefore, &e.EdenAfter, &e.SurvivorAfter, &e.OldAfter, &e.Copied, &e.Promoted,
			&e.Survivors, &e.FromEden, &e.UnseenObjects, &e.UnseenWords} {
			*to = number.Draw(t, "n")
		}
		if rapid.Bool().Draw(t, "ages") {
			e.Unseen = make([]uint32, lifetimes.Bins)
			e.Unseen[rapid.IntRange(0, lifetimes.Bins-1).Draw(t, "bin")] = rapid.Uint32().Draw(t, "words")
		}
		tape.Epochs = append(tape.Epochs, e)
	}
	for range rapid.IntRange(0, 30).Draw(t, "objects") {
		tape.Words = append(tape.Words, rapid.Uint32().Draw(t, "words"))
		tape.Type = append(tape.Type, 0)
		lo, died := number.Draw(t, "born"), lifetimes.Never
		if rapid.Bool().Draw(t, "dead") {
			died = number.Draw(t, "died")
		}
		born := max(lo, number.Draw(t, "born"))
		tape.BornLo, tape.Born = append(tape.BornLo, lo), append(tape.Born, born)
		tape.Seen, tape.Dead = append(tape.Seen, max(born, number.Draw(t, "seen"))), append(tape.Dead, max(born, died))
		tape.Age, tape.Unknown = append(tape.Age, 0), append(tape.Unknown, rapid.Bool().Draw(t, "unknown"))
		weight := float64(rapid.Uint32().Draw(t, "weight"))
		tape.All.Add(rapid.Uint64Range(0, 1<<20).Draw(t, "lo"), 1<<20+number.Draw(t, "hi")/2, weight)
		tape.Size[rapid.IntRange(0, 32).Draw(t, "size")].Add(0, number.Draw(t, "hi"), weight)
	}
	tape.Tail = number.Draw(t, "tail")
	return tape
}

// TestHostileTape: whatever a recording contains, each mode ends with a prediction or an error.
func TestHostileTape(t *testing.T) {
	defer func(n float64) { made = n }(made)
	made = 1 << 10
	rapid.Check(t, func(t *rapid.T) {
		m, err := New(randomTape(t))
		if err != nil {
			return
		}
		q := Request{Young: []uint64{4 << 20}, Old: []uint64{64 << 20}, Tenuring: -1, Goal: Goal{GC: 0.02},
			How: How{Mode: rapid.SampledFrom(Modes).Draw(t, "mode"), Seeds: 1, Given: Probabilities{-1, -1}}}
		if m.Recorded.regional() {
			q.Old, q.Heap = nil, []uint64{64 << 20}
		}
		r, err := m.Answer(context.Background(), q, nil)
		if q.Mode == ModeProbabilities && errors.Is(err, ErrG1) {
			return
		}
		var factor *FactorError
		var size *SizeError
		if err != nil && !errors.As(err, &factor) && !errors.As(err, &size) && !errors.Is(err, ErrNoConfig) {
			t.Fatal(err)
		}
		if err == nil && len(r.Check.Rows) == 0 {
			t.Fatal("no check")
		}
	})
}
