package quality

import (
	"math/rand/v2"
	"testing"
)

// TestSites holds counts, kept along, against counting anew, and what they leave against the definition.
func TestSites(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var s Sites
	type one struct{ typ, site uint32 }
	var live []one
	inferred := 0
	for range 20000 {
		if len(live) > 0 && rng.IntN(100) < 45 {
			i := rng.IntN(len(live))
			s.Sub(live[i].typ, uint64(live[i].site))
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
		} else {
			typ := rng.Uint32N(20)
			o := one{typ, 0}
			if rng.Uint32N(20) < typ {
				o.site = rng.Uint32N(8)
			}
			live = append(live, o)
			s.Add(o.typ, uint64(o.site))
		}
		s.Sub(7, 1000) // nothing
		typ := rng.Uint32N(20)
		n, by, top := 0.0, map[uint32]float64{}, 0.0
		for _, o := range live {
			if o.typ == typ {
				n++
				by[o.site]++
				top = max(top, by[o.site])
			}
		}
		known, _ := s.leaves(typ)
		if known != (n > 0 && Known(n, top) >= Stated) {
			t.Fatalf("type %d: %v with %v of %v", typ, known, top, n)
		}
		if known {
			inferred++
		}
		sum := Unseen(n, float64(len(by)))
		for _, k := range by {
			sum += Known(n, k)
		}
		if n > 0 && (sum < 0.999999 || sum > 1.000001) {
			t.Fatalf("probabilities add up to %v", sum)
		}
	}
	if inferred < 100 {
		t.Errorf("only %d inferred", inferred)
	}
}
