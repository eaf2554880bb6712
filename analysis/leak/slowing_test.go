package leak

import (
	"math"
	"testing"
)

// TestSlowing: a series slows down if it grows less in its last third than before, counted from its onset: without
// noise that shows of a decline by half, as it does of a cache that is nearly full. What grows evenly does not.
func TestSlowing(t *testing.T) {
	for name, c := range map[string]struct {
		v    func(t float64) float64 // 0 to 60
		want bool
	}{
		"even":                  {func(t float64) float64 { return t }, false},
		"even, from a third on": {func(t float64) float64 { return max(0, t-20) }, false},
		"fills":                 {func(t float64) float64 { return 1 - math.Exp(-t/25) }, true},
		"fills, from a fifth on": {func(t float64) float64 {
			return 1 - math.Exp(-max(0, t-12)/25)
		}, true},
		"somewhat slower": {func(t float64) float64 { return 1 - math.Exp(-t/200) }, false},
	} {
		var at, v []float64
		for i := range 40 {
			x := 60 * float64(i) / 39
			at, v = append(at, x), append(v, c.v(x))
		}
		if got := slowing(at, v); got != c.want {
			t.Errorf("%s: slows %v, want %v", name, got, c.want)
		}
	}
}

// TestExactTimes: of three listings the one nearest to the middle is compared with the newest.
func TestExactTimes(t *testing.T) {
	x := exactly{at: []float64{12, 31, 58}, n: []float64{100, 300, 550}}
	got, ok := x.between(2)
	if want := (exactTimes{was: 300, now: 250, at: 31, until: 58}); !ok || got != want {
		t.Errorf("%+v %v, want %+v", got, ok, want)
	}
	if _, ok := (exactly{at: []float64{50, 58}, n: []float64{1, 2}}).between(2); ok {
		t.Error("two listings that are near to each other show no rate")
	}
	if _, ok := (exactly{}).between(0); ok {
		t.Error("nothing shows no rate")
	}
}

// TestManyObjects: counts of very many objects, as a broken listing may have, take no longer to test than few.
func TestManyObjects(t *testing.T) {
	_, h := world(births(1, 40, forever), every([]float64{30, 58}, nil))
	h.exact = exactly{at: []float64{20, 40, 58}, n: []float64{1e18, 2e18, 3e18}}
	for _, s := range h.Sites {
		c := h.curve(s)
		if grows, slows := h.between(s, &c); !grows || slows {
			t.Errorf("what grows evenly: grows %v, slows %v", grows, slows)
		}
	}
}
