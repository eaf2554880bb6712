package leak

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/tiers"
	"github.com/heapcam/heapcam/trace"
)

func key(frame uint64) sites.Key { return sites.Key{Frame: frame, Class: sites.Class{Name: "x"}} }

// TestSuspects puts one slow leak beside sites that churn, that are large and steady, and that rose once and stay.
func TestSuspects(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	r := heap.NewReplay(&analysistest.Source{})
	h := NewDetector()
	v := map[uint64][]float64{}
	for i := range 200 {
		h.Times = append(h.Times, float64(i))
		v[1] = append(v[1], float64(i/4)*524288)
		for k := uint64(2); k < 20; k++ { // large and noisy, no trend
			v[k] = append(v[k], 5e7+2e7*rng.NormFloat64())
		}
		v[20] = append(v[20], map[bool]float64{true: 4e7}[i > 5])
	}
	for k, v := range v {
		h.Sites[key(k)] = dense(v)
	}
	h.floor(10)
	got := h.Verdicts(&r.Cursor)
	if len(got) != 1 || math.Abs(got[0].BytesPerSecond-131072) > 5000 {
		t.Fatalf("the leak is not found: %+v", got)
	}
}

// dense makes a series of what lives after each collection, a sample for each 4 KiB.
func dense(v []float64) *history.Series {
	s := &history.Series{}
	for i, b := range v {
		if n := int32(b/4096) - s.LiveSamples; n != 0 || b != s.LiveBytes {
			s.Add(int32(i), n, b-s.LiveBytes)
		}
	}
	s.Taken = s.Born
	return s
}

// floor lets every n-th collection be one of old space.
func (h *detector) floor(n int) {
	h.MovedN = []int32{int32(len(h.Times) - 1), int32(len(h.Times) - 1)}
	for i := max(n, 1); i < len(h.Times); i += max(n, 1) {
		h.Floors = append(h.Floors, int32(i))
	}
}

func poissonOf(rng *rand.Rand, mean float64) (k float64) {
	for p := rng.ExpFloat64(); p < mean; p += rng.ExpFloat64() {
		k++
	}
	return k
}

// TestConfidence makes whole reports of heaps in which no site grows, of series with more and less memory, and counts
// how often one is named: hardly more often than a confidence of 0.99 says. Find among them must be found all the same.
func TestConfidence(t *testing.T) {
	tiers.Gate(t, "intervals by simulation")
	const n, many, heaps = 120, 60, 60
	rng := rand.New(rand.NewPCG(7, 8))
	poisson := func(mean float64) float64 { return poissonOf(rng, mean) }
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
				v = append(v, alive*8192)
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
				v = append(v, alive*8192)
			}
			return v
		}
	}
	walk := func() (v []float64) { // as many die as are born, without any return to where it was
		x := 1000.0
		for range n {
			x += poisson(5) - poisson(5)
			v = append(v, x*8192)
		}
		return v
	}
	saw := func() (v []float64) { // dead objects wait in old space for its collection
		x, period, phase := float64(rng.IntN(30)), 20+rng.IntN(40), rng.IntN(60)
		for i := range n {
			if x += poisson(3); (i+phase)%period == 0 {
				x = poisson(5)
			}
			v = append(v, x*8192)
		}
		return v
	}
	times := make([]float64, n)
	for i := range times {
		times[i] = float64(i)
	}
	r := heap.NewReplay(&analysistest.Source{})
	for k := range uint64(many) { // four lines a method
		r.Methods[k/4+1] = trace.Method{ID: k/4 + 1, Class: "La/A;", Name: "m" + strconv.Itoa(int(k/4))}
		r.Frames[k] = trace.Frame{ID: k, Method: k/4 + 1, BCI: int64(k % 4)}
	}
	named := func(heaps int, quiet, grows func() []float64) (wrong, found float64) {
		for range heaps {
			h := NewDetector()
			h.Times = times
			h.floor(1)
			for k := range uint64(many) {
				h.Sites[key(k)] = dense(quiet())
			}
			if grows != nil {
				h.Sites[key(1000)] = dense(grows())
			}
			others := 0
			for _, s := range h.Verdicts(&r.Cursor) {
				least := 0.99
				if s.Kind == KindSuspect {
					least = maxUnproven
				}
				if s.Confidence < least || s.Confidence > maxConfidence {
					t.Fatalf("confidence %v", s.Confidence)
				}
				if grows != nil && s.LiveSamples == int(h.Sites[key(1000)].LiveSamples) {
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
	}{{"noise", auto(0), 0.03}, {"some memory", auto(0.5), 0.03}, {"memory", auto(0.8), 0.03},
		{"much memory", auto(0.95), 0.03}, {"short lives", population(5, 3), 0.03},
		{"longer lives", population(3, 10), 0.03}, {"few", population(0.4, 6), 0.03},
		{"few, long lives", population(0.1, 40), 0.03}, {"long lives", population(2, 30), 0.03},
		{"a random walk", walk, 0.05}, {"a saw", saw, 0.03}} {
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

// TestLoaders keeps leaks of classes of one name apart by their loaders.
func TestLoaders(t *testing.T) {
	r := heap.NewReplay(&analysistest.Source{})
	for _, ty := range []trace.Type{{ID: 1, Name: "a/Plugin", Loader: 1}, {ID: 2, Name: "a/Plugin", Loader: 2},
		{ID: 3, Name: "a/L$$Lambda+0x1", Flags: trace.TypeHidden},
		{ID: 4, Name: "a/L$$Lambda+0x2", Flags: trace.TypeHidden}, {ID: 5, Name: "a/Plugin", Loader: 1}} {
		r.Types[ty.ID] = ty
	}
	r.Loaders[1], r.Loaders[2] = trace.Loader{ID: 1, Name: "app"}, trace.Loader{ID: 2, Name: "plugins"}
	h := NewDetector()
	var rise []float64
	for i := range 100 {
		h.Times, rise = append(h.Times, float64(i)), append(rise, float64(i)*8192)
	}
	h.floor(5)
	for _, id := range []uint32{1, 2} {
		h.Sites[sites.Key{Frame: uint64(id), Class: sites.ClassOf(r.Symbols, id).Folded()}] = dense(rise)
	}
	got := h.Verdicts(&r.Cursor)
	if len(got) != 2 || got[0].Loader == "" || got[0].Loader == got[1].Loader {
		t.Errorf("%+v", got)
	}
}

// TestShapes judges series of known shapes, with collections of old space and without.
func TestShapes(t *testing.T) {
	const n = 60
	ramp := func(from, to int) func(int) float64 {
		return func(i int) float64 { return float64(min(max(i-from, 0), to-from)) * 65536 }
	}
	saw := func(i int) float64 { return float64(i%12) * 65536 }
	garbage := func(i int) float64 { return float64(i%20)*65536 + 65536 } // comes down in the floors, every 20
	for name, c := range map[string]struct {
		f     func(int) float64
		every int // floors; 0: none
		holds bool
		leak  bool
	}{
		"leak":                             {ramp(0, n), 10, false, true},
		"leak without floors":              {ramp(0, n), 0, true, true},
		"leak that nothing holds":          {ramp(0, n), 0, false, false},
		"leak that began late":             {ramp(15, n), 10, false, true},
		"cache that fills":                 {ramp(0, 20), 10, false, false},
		"cache that fills, without floors": {ramp(0, 20), 0, true, false},
		"one step":                         {ramp(29, 31), 10, false, false},
		"only at the end":                  {ramp(50, n), 10, false, false},
		"sawtooth":                         {saw, 12, false, false},
		"sawtooth without floors":          {saw, 0, true, false},
		"garbage":                          {garbage, 20, false, false},
	} {
		h := NewDetector()
		var v []float64
		for i := range n {
			h.Times, v = append(h.Times, float64(i)), append(v, c.f(i))
		}
		h.floor(max(c.every, 0))
		if c.every == 0 {
			h.Floors = nil
		}
		if c.holds {
			h.arrays[1] = &lengths{most: []uint64{20, 40, 80, 160}, at: []int32{4, 12, 25, 50}}
		}
		h.Sites[key(1)] = dense(v)
		if got := h.Verdicts(heap.NewReplay(&analysistest.Source{}).Position()); len(got) == 1 != c.leak {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestHolders tells collections that grow from those that have grown.
func TestHolders(t *testing.T) {
	grow := func(step func(int) int, until int) *lengths {
		// some other array is the longest
		a := &lengths{seen: map[uint64]int32{}, most: []uint64{1 << 20}, at: []int32{0}}
		size := 24
		for i := 1; i <= until; i++ {
			for size < i*50 {
				size = step(size)
			}
			if _, ok := a.seen[uint64(size)]; !ok {
				a.seen[uint64(size)] = int32(i)
			}
		}
		return a
	}
	holds := func(h *detector, factor float64) bool { // of a series that grows so many times over at the end
		low := make([]float64, len(h.Times))
		for i := range low {
			low[i] = 1e6
		}
		low[len(low)-1] *= factor
		grows, open := h.holderGrows(&history.Series{}, h.Times, low)
		if open {
			t.Error("lengths of arrays were known")
		}
		return grows
	}
	none := NewDetector()
	for i := range 60 {
		none.Times = append(none.Times, float64(i+1))
	}
	if holds(none, 3) || holds(none, 1.5) {
		t.Error("what nothing holds")
	}
	if none.From = 25; holds(none, 3) || !holds(none, 1.5) {
		t.Error("of a window that began late little growth can be found")
	}
	if none.late = true; holds(none, 1.5) {
		t.Error("what was there when the recording began may have been replaced")
	}
	for name, c := range map[string]struct {
		step  func(int) int
		until int
		want  bool
	}{
		"list":               {func(n int) int { return n + n/2 }, 59, true},
		"table":              {func(n int) int { return 2 * n }, 59, true},
		"deque":              {func(n int) int { return 2*n + 2 }, 59, true},
		"copied":             {func(n int) int { return n + 1 }, 59, true},
		"list that is full":  {func(n int) int { return n + n/2 }, 20, false},
		"table that is full": {func(n int) int { return 2 * n }, 15, false},
		"copied until half":  {func(n int) int { return n + 1 }, 20, false},
	} {
		h := NewDetector()
		for i := range 60 {
			h.Times = append(h.Times, float64(i+1))
		}
		h.arrays[1] = grow(c.step, c.until)
		if holds(h, 100) != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}

// TestMethod names a method whose lines have too few samples each, all of which grow; not if the objects of one of them
// are known to be let go.
func TestMethod(t *testing.T) {
	for _, dead := range []bool{false, true} {
		r := heap.NewReplay(&analysistest.Source{})
		r.Methods[1] = trace.Method{ID: 1, Class: "La/Leak;", Name: "put",
			Lines: []trace.LineEntry{{BCI: 0, Line: 10}, {BCI: 8, Line: 11}}}
		h := NewDetector()
		for i := range 60 {
			h.Times = append(h.Times, float64(i))
		}
		h.MovedN, h.Newest = []int32{59, 59}, 100
		h.arrays[1] = &lengths{most: []uint64{20, 40, 80, 160}, at: []int32{4, 12, 25, 50}}
		for k := range 4 {
			frame := uint64(k + 1)
			r.Frames[frame] = trace.Frame{ID: frame, Method: 1, BCI: int64(k / 2 * 8)}
			s := &history.Series{}
			for i := range 5 {
				s.Add(int32(10*i+2*k+2), 1, 524288)
			}
			s.Taken = s.Born
			if dead && k == 0 {
				s.Add(50, 2, 2*524288)
				s.Add(55, -2, -2*524288)
			}
			h.Sites[key(frame)] = s
		}
		got := h.Verdicts(&r.Cursor)
		if dead && len(got) > 0 ||
			!dead && (len(got) != 1 || got[0].LiveSamples != 20 || got[0].Site[0].Method != "put") {
			t.Errorf("%v: %+v", dead, got)
		}
	}
}
