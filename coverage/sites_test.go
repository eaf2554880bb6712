package coverage

import (
	"math/rand/v2"
	"testing"
)

// TestSites compares running counts with counting anew, and the expected share that follows with its definition.
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
		p, _ := s.likeliest(typ)
		if n == 0 && p != 0 || n > 0 && p != Known(n, top) {
			t.Fatalf("type %d: %v with %v of %v", typ, p, top, n)
		}
		if p > 0.5 {
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

// TestNoJump takes samples of a type, nine tenths of which are of one site, out and in: what is inferred follows by
// little.
func TestNoJump(t *testing.T) {
	var s Sites
	var live, exact Totals
	live.Add(1, Count{10000, 160000})
	exact.Add(1, Count{100, 1600})
	for i := range 100 {
		s.Add(1, uint64(i/90))
	}
	rec := Recording{AtStart: true}
	before := rec.After(&live, &exact, &s).Inferred.Objects
	for i := range 60 {
		site := uint64(i / 3 % 2)
		if i%2 == 0 {
			s.Sub(1, site)
		} else {
			s.Add(1, 1-site)
		}
		q := rec.After(&live, &exact, &s)
		if d := max(before, q.Inferred.Objects) - min(before, q.Inferred.Objects); d > 9900*2/100 {
			t.Fatalf("one sample of 100 moves what is inferred by %d of 9900 objects", d)
		}
		before = q.Inferred.Objects
	}
	if before < 6500 || before > 9000 {
		t.Errorf("%d inferred", before)
	}
}
