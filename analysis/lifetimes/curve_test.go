package lifetimes

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestCurve draws lifetimes from a known distribution, hides them between collections, and compares the estimate with
// the truth. Birth is known, and death lies between two of the collections that come each 1 << 16 words.
func TestCurve(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const every = 1 << 16
	truth := func(age float64) float64 { return 0.7*math.Exp(-age/8000) + 0.3*math.Exp(-age/400000) }
	var tally Tally
	for range 200_000 {
		life := rng.ExpFloat64() * 8000
		if rng.IntN(10) < 3 {
			life = rng.ExpFloat64() * 400000
		}
		born := uint64(rng.IntN(every))
		dead := born + uint64(life)
		seen, found := dead/every*every, (dead/every+1)*every
		lo, hi := uint64(0), found-born
		if seen > born {
			lo = seen - born
		}
		if found > 1<<22 { // the recording ends
			hi = Never
			lo = 1<<22 - born
		}
		tally.Add(lo, hi, 1)
	}
	c := tally.Curve()
	for _, age := range []float64{1000, 4000, 8000, 16000, 60000, 200000, 400000, 1000000} {
		if got, want := c.At(age), truth(age); math.Abs(got-want) > 0.03 {
			t.Errorf("older than %.0f words: %.3f, is %.3f", age, got, want)
		}
	}
	if q, ok := c.Quantile(0.5); !ok || math.Abs(truth(q)-0.5) > 0.03 {
		t.Errorf("median %.0f, %v: %.3f live longer", q, ok, truth(q))
	}
	// What is drawn between two ages is distributed as between them.
	n := 0
	for range 10000 {
		x := c.Draw(4000, 100000, rng.Float64())
		if x < 4000 || x > 100000 {
			t.Fatal(x)
		}
		if x > 20000 {
			n++
		}
	}
	want := (truth(20000) - truth(100000)) / (truth(4000) - truth(100000))
	if got := float64(n) / 10000; math.Abs(got-want) > 0.05 {
		t.Errorf("drawn beyond 20000: %.3f, %.3f expected", got, want)
	}
}

// TestNothingDied: of objects that no collection found dead, no age is known that they do not reach.
func TestNothingDied(t *testing.T) {
	var tally Tally
	for age := uint64(1000); age < 1<<20; age += 1000 {
		tally.Add(age, Never, 1)
	}
	c := tally.Curve()
	if q, ok := c.Quantile(0.5); ok || c.At(1<<21) < 1-1e-9 {
		t.Errorf("half of them die before %.0f, %.2f live on", q, c.At(1<<21))
	}
	if c.Reach != Bin(1<<20-1) {
		t.Errorf("the curve goes to bin %d", c.Reach)
	}
}

// TestBins: each age is in the bin whose edges are around it.
func TestBins(t *testing.T) {
	for _, age := range []uint64{0, 1, 15, 16, 17, 100, 12345, 1 << 20, 1<<20 - 1, 1<<33 + 12345} {
		i := Bin(age)
		if float64(age) < Edge(i)*(1-1e-9) || float64(age) > Edge(i+1)*(1+1e-9) {
			t.Errorf("%d is in bin %d, from %.1f to %.1f", age, i, Edge(i), Edge(i+1))
		}
	}
	if Bin(1<<62) != Bins-1 {
		t.Error("a huge age is in no bin")
	}
}
