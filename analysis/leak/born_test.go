package leak

import (
	"math"
	"math/rand/v2"
	"testing"
)

// agesIn gives the ages of all objects of a site that live at a time.
func agesIn(objects []object, site uint64, at float64) func(uint64) *Ages {
	const spans = 24
	a := &Ages{}
	for i := range spans {
		a.At = append(a.At, at*float64(i+1)/spans)
	}
	objs := make([]float64, spans)
	bytes := make([]float64, spans)
	for _, o := range objects {
		if o.site == site && o.born <= at && o.dies > at {
			objs[int(o.born/at*spans-1e-9)]++
			bytes[int(o.born/at*spans-1e-9)] += 1000
		}
	}
	a.Count = func(types map[uint64]bool, least, most uint64) (n, b []float64) {
		if !types[1] || least > 1000 || most < 1000 {
			return make([]float64, spans), make([]float64, spans)
		}
		return objs, bytes
	}
	return func(uint64) *Ages { return a }
}

// TestBornSteadily: of 300 objects a second of a site 15 stay, and 1 of 40 is a sample. Its samples are too few, but
// the ages of all that live show it. They show nothing of what has a limit, is renewed, or came at the start.
func TestBornSteadily(t *testing.T) {
	share := func(of float64, life func(r *rand.Rand, born float64) float64) func(*rand.Rand, float64) float64 {
		return func(r *rand.Rand, born float64) float64 {
			if r.Float64() < of {
				return life(r, born)
			}
			return 0.5 + 5*r.Float64()
		}
	}
	stays := func(*rand.Rand, float64) float64 { return math.Inf(1) }
	for name, c := range map[string]struct {
		life func(r *rand.Rand, born float64) float64
		want bool
	}{
		"one in 20 stays":    {share(0.05, stays), true},
		"all end":            {share(0, stays), false},
		"one in 10 for 20 s": {share(0.1, func(*rand.Rand, float64) float64 { return 20 }), false},
		"one in 10 for 40 s": {share(0.1, func(*rand.Rand, float64) float64 { return 40 }), false},
		"lives differ by much": {func(r *rand.Rand, _ float64) float64 {
			return math.Exp(r.NormFloat64() * 1.5)
		}, false},
		"fewer stay ever": {func(r *rand.Rand, born float64) float64 { // keys that are new: a cache that fills up
			return share(0.3*math.Exp(-born/15), stays)(r, born)
		}, false},
		"chance evicts": {share(0.1, func(r *rand.Rand, _ float64) float64 { return 15 * r.ExpFloat64() }), false},
		"at the start only": {func(r *rand.Rand, born float64) float64 {
			if born < 8 {
				return share(0.2, stays)(r, born)
			}
			return share(0, stays)(r, born)
		}, false},
	} {
		named := 0
		for seed := range uint64(8) {
			r := rand.New(rand.NewPCG(seed, 7))
			var all, samples []object
			for i := range 60 * 300 {
				born := float64(i) / 300
				o := object{1, born, born + c.life(r, born)}
				if all = append(all, o); r.IntN(40) == 0 {
					samples = append(samples, o)
				}
			}
			samples = append(samples, births(2, 20, lives(0.1))...) // what else the program does
			rep, h := world(samples, every([]float64{20, 40, 59}, nil))
			h.Ages, h.listed = agesIn(all, 1, 59), []uint64{59}
			l := h.Report(&rep.Cursor)
			if len(l.Verdicts) == 0 {
				if c.want {
					t.Logf("%s, %d: %+v", name, seed, l.Misses)
				}
				continue
			}
			named++
			if v := l.Verdicts[0]; c.want && v.stayed > 0 && (math.Abs(v.BytesPerSecond/15e3-1) > 0.25) {
				t.Errorf("%s, %d: %v bytes a second, want 15,000", name, seed, v.BytesPerSecond)
			} else if !c.want {
				t.Logf("%s, %d: %+v", name, seed, v)
			}
		}
		if c.want && named < 6 || !c.want && named > 0 {
			t.Errorf("%s: named in %d of 8", name, named)
		}
	}
}

// TestBornFrom: a leak began when the oldest of its objects that live were born, also if the first samples came later.
func TestBornFrom(t *testing.T) {
	var all, samples []object
	for i := range 60 * 100 {
		o := object{1, float64(i) / 100, math.Inf(1)}
		if o.born < 20 { // these are closed
			o.dies = o.born + 1
		}
		if all = append(all, o); i%50 == 0 && (o.born < 20 || o.born > 26) {
			samples = append(samples, o)
		}
	}
	samples = append(samples, births(2, 20, lives(0.1))...)
	for _, known := range []bool{false, true} {
		r, h := world(samples, every([]float64{20, 40, 59}, nil))
		if known {
			h.Ages, h.listed = agesIn(all, 1, 59), []uint64{59}
		}
		l := h.Report(&r.Cursor)
		if len(l.Verdicts) != 1 {
			t.Fatalf("%+v, %+v", l.Verdicts, l.Misses)
		}
		from := float64(l.Verdicts[0].OnsetFrom.UnixNano()) / 1e9
		from -= math.Floor(from/60) * 60
		if early := from < 22; early != known {
			t.Errorf("ages known %v: from %v", known, l.Verdicts[0].OnsetFrom)
		}
	}
}

// TestWeakEntry: ages of entries of weak maps say nothing, those of the program's own classes do.
func TestWeakEntry(t *testing.T) {
	for class, want := range map[string]bool{"java.util.WeakHashMap$Entry": true, "java.util.HashMap$Node": false,
		"java.lang.ref.WeakReference": true, "shop.WeakEntry": false} {
		if weakEntry(class) != want {
			t.Errorf("%s: %v", class, !want)
		}
	}
}
