package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// uneven gives n times: of each ten, nine lie close together.
func uneven(n int) (t []float64) {
	now := 0.0
	for i := range n {
		now += 0.8
		if i%10 == 0 {
			now += 5
		}
		t = append(t, now)
	}
	return t
}

// TestDriftOfSteadyGrowth: a steady growth with noise of the level is no drift, however unevenly its points lie.
func TestDriftOfSteadyGrowth(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	at := uneven(40)
	v := make([]float64, len(at))
	for i := range v {
		v[i] = 80 + 5*at[i] + 20*(2*r.Float64()-1)
	}
	if p := Drift(at, v); p > 1e-3 { // blocks of as many points each give 0.04
		t.Errorf("a steady growth: p = %g", p)
	}
	if p := Drift(at, at[:1]); p != 1 {
		t.Errorf("one point: p = %g", p)
	}
}

// TestDriftOfRandomWalks: of walks without drift at most twice as many are taken for growth as the probability says:
// between points that are far apart a level is a line, which hides some of its noise.
func TestDriftOfRandomWalks(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const walks, level = 4000, 0.01
	found := 0
	for range walks {
		at := uneven(40)
		v, now, before := make([]float64, len(at)), 0.0, 0.0
		for i := range v {
			now += 10 * r.NormFloat64() * math.Sqrt(at[i]-before)
			before, v[i] = at[i], now
		}
		if Drift(at, v) < level {
			found++
		}
	}
	if found > 2*walks*level {
		t.Errorf("%d of %d walks are growth at %g", found, walks, level)
	}
}

// TestLine: points around a level rarely rise along a line, and those of a line do.
func TestLine(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const series, level = 4000, 0.01
	for _, n := range []int{4, 8, 40} {
		at, v := uneven(n), make([]float64, n)
		found := 0
		for range series {
			for i := range v {
				v[i] = 100 + 10*r.NormFloat64()
			}
			if Line(at, v) < level {
				found++
			}
		}
		if found > 2*series*level || found == 0 {
			t.Errorf("%d of %d series of %d points are lines at %g", found, series, n, level)
		}
		for i := range v {
			v[i] = 100 + 5*at[i] + at[n-1]/20*r.Float64()
		}
		if p := Line(at, v); p > level {
			t.Errorf("a line of %d points: p = %g", n, p)
		}
	}
	if p := Line([]float64{1, 2}, []float64{1, 2}); p != 1 {
		t.Errorf("two points: p = %g", p)
	}
}
