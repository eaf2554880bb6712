package leak

import (
	"slices"
	"testing"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// counted gives h exact counts of the world's class after collections of old space.
func counted(h *detector, floors []float64, objects func(t float64) float64) {
	for _, t := range floors {
		n := uint64(objects(t))
		h.levels.add(&heap.Collection{Pause: trace.Pause{Kind: trace.PauseFull}}, t,
			[]heap.Count{{}, {Objects: n, Bytes: 1000 * n}})
	}
}

// TestClasses: a class that has too few samples is judged by its exact counts, and by the ages of what is allocated at
// the same place. A load that rises and a cache that is full keep the age of their oldest objects.
func TestClasses(t *testing.T) {
	floors := []float64{12, 24, 36, 48, 58}
	line := func(t float64) float64 { return 100 * t }
	full := func(t float64) float64 { return line(min(t, 30)) }
	fills := func(t float64) float64 { return 5000 * t / (t + 20) }
	rising := func(life float64) (all []object) {
		for _, o := range births(1, 1, lives(life)) {
			if o.born > 50 || int(o.born)%3 == 0 || o.born > 25 && int(o.born)%2 == 0 {
				all = append(all, o)
			}
		}
		return all
	}
	for name, c := range map[string]struct {
		objects []object
		counts  func(t float64) float64
		kind    string
	}{
		"a leak of few samples":           {births(1, 0.2, forever), line, KindLeak},
		"of fewer":                        {births(1, 0.03, forever), line, KindSuspect},
		"a cache that is full since 30 s": {births(1, 0.03, forever), full, ""},
		"one that fills up ever slower":   {births(1, 0.03, forever), fills, ""},
		"a load that rises":               {rising(6), line, ""},
	} {
		all := append(slices.Clone(c.objects), births(2, 16, lives(0.3))...) // the program goes on
		r, h := world(all, every(floors, nil))
		counted(h, floors, c.counts)
		l := h.Report(&r.Cursor)
		kind := ""
		if len(l.Verdicts) > 0 {
			kind = l.Verdicts[0].Kind
		}
		if kind != c.kind || len(l.Verdicts) > 1 {
			t.Errorf("%s: %q, want %q: %+v, %+v", name, kind, c.kind, l.Verdicts, l.Misses)
		}
		for _, v := range l.Verdicts {
			t.Log(name, ": ", v.Sentence)
		}
	}
}

// TestLevels: of very many collections of old space those in between are given up, the first and the newest are kept.
func TestLevels(t *testing.T) {
	h := NewDetector()
	var floors []float64
	for i := range 1000 {
		floors = append(floors, float64(i+1))
	}
	counted(h, floors, func(t float64) float64 { return t })
	l := &h.levels
	if n := len(l.at); n > mostLevels || n < mostLevels/4 || l.at[0] != 1 || l.at[n-1] != 1000 {
		t.Errorf("%d levels: %v", n, l.at)
	}
	for i, at := range l.at {
		if l.types[i][1].Objects != uint64(at) {
			t.Errorf("level %d at %g: %v", i, at, l.types[i])
		}
	}
	if mid := middle(l.at); mid < 0 || l.at[mid] < 250 || l.at[mid] > 750 {
		t.Errorf("the middle is %d", mid)
	}
}
