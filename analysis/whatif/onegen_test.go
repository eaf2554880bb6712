package whatif

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestEquations: of a program in a steady state both equations give the heap without what lives, and so does a count of
// its collections.
func TestEquations(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	in := &Input{}
	now := uint64(0)
	const size, life, n = 6, 30_000, 200_000
	for range n {
		died := now + 1 + uint64(rng.ExpFloat64()*life)
		in.Born, in.Died, in.Words = append(in.Born, now), append(in.Died, died), append(in.Words, size)
		now += size
	}
	in.End = now
	p := newPopulation(in)
	for _, heap := range []uint64{40_000, 60_000, 120_000} {
		_, mean, ok := p.equation1(heap, in.End)
		if want := float64(heap - life); !ok || math.Abs(mean/want-1) > 0.05 {
			t.Errorf("heap of %d words: %.0f between collections, %.0f expected", heap, mean, want)
		}
	}
	if _, _, ok := p.equation1(life/2, in.End); ok {
		t.Error("a heap that is too small has no error")
	}
	if n, _, _ := p.equation1(2*now, in.End); n != 0 {
		t.Errorf("%d collections in a heap that holds everything", n)
	}
	lives := 0.0
	for i := range in.Born {
		lives += float64(min(in.Died[i], in.End) - in.Born[i])
	}
	if mean := lives / float64(now); math.Abs(mean/(life/size)-1) > 0.05 {
		t.Errorf("mean lifetime %.0f objects, %d expected", mean, life/size)
	}
}

// TestPopulation compares with a count of all objects.
func TestPopulation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := randomInput(t)
		p := newPopulation(in)
		now := rapid.Uint64Range(0, in.End+10).Draw(t, "now")
		want := uint64(0)
		for i := range in.Born {
			if in.Born[i] < now && in.Died[i] > now {
				want += uint64(in.Words[i])
			}
		}
		if got := p.at(now); got != want {
			t.Fatalf("%d words live at %d, are %d", got, now, want)
		}
	})
}
