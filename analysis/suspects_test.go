package analysis

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

func key(frame uint64) siteKey { return siteKey{frame, Class{Name: "x"}} }

// TestSuspects puts one slow leak beside sites that churn, that are large and steady, and that rose once and stay.
func TestSuspects(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	r := heap.NewReplayer(&blocks{})
	sites := map[siteKey]*track{}
	var times []float64
	for k := range uint64(21) {
		sites[key(k)] = &track{n: 50, most: 50}
	}
	put := func(k uint64, v float64) { sites[key(k)].bytes = append(sites[key(k)].bytes, v) }
	for i := range 200 {
		times = append(times, float64(i))
		put(1, float64(i/4)*524288)
		for k := uint64(2); k < 20; k++ { // large and noisy, no trend
			put(k, 5e7+2e7*rng.NormFloat64())
		}
		put(20, map[bool]float64{true: 4e7}[i > 5])
		put(0, 0)
	}
	rep := &Report{}
	rep.suspects(r, &tracks{times: times, sites: sites})
	if len(rep.Suspects) == 0 || math.Abs(rep.Suspects[0].BytesPerSecond-131072) > 5000 {
		t.Fatalf("the leak is not first: %+v", rep.Suspects)
	}
}

// TestConfidence makes whole reports of heaps in which no site grows, of series with more and less memory, and counts how often one is named:
// hardly more often than a confidence of 0.95 says. Leaks among them must be found all the same.
func TestConfidence(t *testing.T) {
	const n, many, heaps = 120, 60, 100
	rng := rand.New(rand.NewPCG(7, 8))
	poisson := func(mean float64) (k float64) {
		for p := rng.ExpFloat64(); p < mean; p += rng.ExpFloat64() {
			k++
		}
		return k
	}
	// Objects are born by chance and die after an exponential time; the series begins in equilibrium.
	population := func(births, life float64) func() []float64 {
		return func() (v []float64) {
			alive := poisson(births * life)
			for range n {
				stay := 0.0
				for range int(alive) {
					if rng.Float64() < math.Exp(-1/life) {
						stay++
					}
				}
				alive = stay + poisson(births*life*(1-math.Exp(-1/life)))
				v = append(v, alive*1000)
			}
			return v
		}
	}
	auto := func(phi float64) func() []float64 {
		return func() (v []float64) {
			x := rng.NormFloat64() / math.Sqrt(1-phi*phi)
			for range n {
				x = phi*x + rng.NormFloat64()
				v = append(v, 1e6+1e4*x)
			}
			return v
		}
	}
	leak := func(births float64) func() []float64 {
		return func() (v []float64) {
			alive := 0.0
			for range n {
				alive += poisson(births)
				v = append(v, alive*1000)
			}
			return v
		}
	}
	walk := func() (v []float64) { // as many die as are born, without any return to where it was
		x := 1000.0
		for range n {
			x += poisson(5) - poisson(5)
			v = append(v, x*1000)
		}
		return v
	}
	saw := func() (v []float64) { // dead objects wait in old space for its collection
		x, period, phase := float64(rng.IntN(30)), 20+rng.IntN(40), rng.IntN(60)
		for i := range n {
			if x += poisson(3); (i+phase)%period == 0 {
				x = poisson(5)
			}
			v = append(v, x*1000)
		}
		return v
	}
	times := make([]float64, n)
	for i := range times {
		times[i] = float64(i)
	}
	named := func(heaps int, quiet, grows func() []float64) (wrong, found float64) {
		for range heaps {
			series := map[siteKey]*track{}
			for k := range uint64(many) {
				series[key(k)] = &track{bytes: quiet(), n: 10, most: 10}
			}
			if grows != nil {
				series[key(1000)] = &track{bytes: grows(), n: 11, most: 11}
			}
			rep := &Report{}
			rep.suspects(heap.NewReplayer(&blocks{}), &tracks{times: times, sites: series})
			others := 0
			for _, s := range rep.Suspects {
				if s.Confidence < 0.95 || s.Confidence > surest {
					t.Fatalf("confidence %v", s.Confidence)
				}
				if s.LiveSamples == 11 {
					found++
				} else {
					others = 1
				}
			}
			wrong += float64(others)
		}
		return wrong / float64(heaps), found / float64(heaps)
	}
	for _, c := range []struct {
		name  string
		quiet func() []float64
		most  float64
	}{{"noise", auto(0), 0.1}, {"some memory", auto(0.5), 0.1}, {"memory", auto(0.8), 0.1}, {"much memory", auto(0.95), 0.1}, {"short lives", population(5, 3), 0.1},
		{"longer lives", population(3, 10), 0.1}, {"long lives", population(2, 30), 0.1},
		{"a random walk", walk, 0.12}, {"a saw", saw, 0.1}} {
		a, _ := named(heaps, c.quiet, nil)
		t.Logf("%s: %.3f of heaps without growth have a suspect", c.name, a)
		if a > c.most {
			t.Errorf("%s: %.3f of heaps without growth have a suspect", c.name, a)
		}
	}
	for _, births := range []float64{0.2, 0.5, 2, 20} {
		_, found := named(40, population(3, 10), leak(births))
		t.Logf("a leak of %v samples a collection: found in %.2f", births, found)
		if births >= 0.5 && found < 0.9 {
			t.Errorf("a leak of %v samples a collection is found in %.2f of heaps", births, found)
		}
	}
}

// TestLoaders keeps classes of one name apart by their loaders, and puts hidden classes of one family together.
func TestLoaders(t *testing.T) {
	r := heap.NewReplayer(&blocks{})
	for _, ty := range []trace.Type{{ID: 1, Name: "a/Plugin", Loader: 1}, {ID: 2, Name: "a/Plugin", Loader: 2}, {ID: 3, Name: "a/L$$Lambda+0x1", Flags: trace.TypeHidden},
		{ID: 4, Name: "a/L$$Lambda+0x2", Flags: trace.TypeHidden}, {ID: 5, Name: "a/Plugin", Loader: 1}} {
		r.Types[ty.ID] = ty
	}
	r.Loaders[1], r.Loaders[2] = trace.Loader{ID: 1, Name: "app"}, trace.Loader{ID: 2, Name: "plugins"}
	rep := &Report{}
	rep.grown(r, nil, []heap.Count{{}, {Objects: 1, Bytes: 100}, {Objects: 2, Bytes: 50}, {Objects: 1, Bytes: 10}, {Objects: 1, Bytes: 10}, {Objects: 1, Bytes: 100}})
	if len(rep.Grown) != 3 || rep.Grown[0] != (GrownClass{"a.Plugin", "app #1", 2, 200}) || rep.Grown[1] != (GrownClass{"a.Plugin", "plugins #2", 2, 50}) ||
		rep.Grown[2].Bytes != 20 || rep.Grown[2].Loader != "" {
		t.Errorf("%+v", rep.Grown)
	}
	sites := map[siteKey]*track{}
	var times, rise []float64
	for i := range 100 {
		times, rise = append(times, float64(i)), append(rise, float64(i)*1000)
	}
	for _, id := range []uint32{1, 2} {
		sites[siteKey{9, ClassOf(r, id).folded()}] = &track{bytes: rise, n: 9, most: 9}
	}
	rep.suspects(r, &tracks{times: times, sites: sites})
	if len(rep.Suspects) != 2 || rep.Suspects[0].Loader == "" || rep.Suspects[0].Loader == rep.Suspects[1].Loader {
		t.Errorf("%+v", rep.Suspects)
	}
}

// TestTracks shows that the points of a long recording stay few and even, the first and the last among them.
func TestTracks(t *testing.T) {
	for _, n := range []int{1, 7, 239, 240, 241, 1000, 5000} {
		ts := newTracks()
		r := heap.NewReplayer(&blocks{})
		for i := range n {
			r.Live = map[uint64]*heap.Sample{1: {Sample: trace.Sample{Size: uint64(i)}, Weight: 1}}
			c := &heap.Collection{}
			c.GC, c.Start = uint64(i+2), uint64(i)*1e9
			ts.collection(r, c)
		}
		ts.finish(r)
		k := len(ts.times)
		if k == 0 || k > 2*points || k < min(n, points) || ts.times[0] != 0 || ts.times[k-1] != float64(n-1) {
			t.Fatalf("%d collections: %d points from %v to %v", n, k, ts.times[0], ts.times[k-1])
		}
		for _, tr := range ts.sites {
			for i, v := range tr.bytes {
				if v != ts.times[i] || i > 1 && i < k-1 && ts.times[i]-ts.times[i-1] != float64(ts.stride) {
					t.Fatalf("%d collections: point %d of %d is at %v and has %v", n, i, k, ts.times[i], v)
				}
			}
		}
	}
}

// TestFloors judges by full collections if there are enough of them, and says when old space was never collected.
func TestFloors(t *testing.T) {
	for full, after := range map[int]string{0: "all collections", 3: "full collections"} {
		steps := 7
		if full > 0 {
			steps = 40
		}
		m := tracetest.New(tracetest.Config{Seed: 11})
		var bs []trace.Block
		old := 0
		for i := range steps {
			e := m.Step(i == 0)
			if full > 0 && i%full == 0 {
				if bs = append(bs, e.Blocks...); e.Pause.Kind == trace.PauseFull {
					old++
				}
				e = m.FullGC()
			}
			if e.Pause.Kind == trace.PauseFull {
				old++
			}
			bs = append(bs, e.Blocks...)
		}
		rep, err := MakeReport(heap.NewReplayer(&blocks{bs}))
		if err != nil || rep.SuspectsAfter != after || rep.OldCollections != old {
			t.Errorf("%v, after %q, %d old collections of %d", err, rep.SuspectsAfter, rep.OldCollections, old)
		}
	}
}
