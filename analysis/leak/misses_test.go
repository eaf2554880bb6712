package leak

import (
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// TestPartOfVerdict: the keys of a map that leaks are no near miss of their own. What the program is seen to drop is,
// and what is allocated elsewhere unless the same collection holds it.
func TestPartOfVerdict(t *testing.T) {
	const order, key, cache, far = 1, 2, 3, 4
	for name, c := range map[string]struct {
		site   uint64
		grown  float64
		why    why
		holder bool
		reason string
	}{
		"keys":                         {key, 24e3, whyHolder, false, "part"},
		"keys, too few samples":        {key, 24e3, whyChance, false, "part"},
		"seen to be dropped":           {key, 24e3, whyDropped, false, "dropped"},
		"far more":                     {key, 24e5, whyHolder, false, "holder"},
		"another method":               {far, 24e3, whyHolder, false, "holder"},
		"another method, same holder":  {far, 24e3, whyHolder, true, "part"},
		"another method, other holder": {cache, 24e3, whyHolder, true, "holder"},
	} {
		r := heap.NewReplay(&analysistest.Source{})
		h := NewDetector()
		r.Methods[1] = trace.Method{ID: 1, Class: "Lshop/Web;", Name: "remember"}
		r.Methods[2] = trace.Method{ID: 2, Class: "Lshop/Web;", Name: "cache"}
		of := func(frame uint64) sites.Key { return sites.Key{Frame: frame, Class: sites.Class{Name: "x"}} }
		for frame := uint64(order); frame <= far; frame++ {
			m := uint64(1)
			if frame >= cache {
				m = 2
			}
			r.Frames[frame] = trace.Frame{ID: frame, Method: m, BCI: int64(frame)}
			h.Sites[of(frame)] = &history.Series{Objects: 1000, Allocated: 24e3, Taken: 10}
		}
		h.Sites[of(order)].Allocated = 600e3
		if c.holder {
			h.Holder = func(ks []sites.Key, _ uint64) ui.Flow {
				if ks[0].Frame == cache {
					return "static Web.OTHER, then [] → Node.key"
				}
				return "static Web.ALL, then [] → Node.key"
			}
		}
		x := newHeads(r.Symbols)
		s := &structure{head: x.of(order), keys: []sites.Key{of(order)}, members: []*part{{key: of(order), grown: 600e3,
			line: own(r.Symbols, order)}}}
		got := h.misses(&r.Cursor, x, []candidate{{key: of(c.site), s: h.Sites[of(c.site)],
			growth: growth{grown: c.grown, why: c.why}}}, []*structure{s},
			[]told{{s, 3, "static Web.ALL, then [] → Node.value"}})
		if len(got) != 1 || got[0].Reason != c.reason ||
			strings.HasSuffix(string(got[0].Text()), "it is probably a part of verdict 3.") != (c.reason == "part") {
			t.Errorf("%s: %+v, want %s", name, got, c.reason)
		}
	}
}

// TestManySamples: a leak of so many objects, each of them sampled, has not stopped; nor has one of few.
func TestManySamples(t *testing.T) {
	for _, n := range []float64{600, 30_000} {
		var at, samples []float64
		for i := range 60 {
			at, samples = append(at, float64(i)), append(samples, n/60*float64(i))
		}
		if stopped(at, samples) {
			t.Errorf("%v samples: stopped", n)
		}
		for i := 48; i < 60; i++ {
			samples[i] = samples[48]
		}
		if !stopped(at, samples) {
			t.Errorf("%v samples: goes on", n)
		}
	}
}

// TestSmallMiss: of what grew by less than the limit nobody can say whether it grew in one step. Of what grew by more
// that is said.
func TestSmallMiss(t *testing.T) {
	for grown, want := range map[float64]string{1 << 20: "small", 1 << 30: "stopped"} {
		r := heap.NewReplay(&analysistest.Source{})
		h := NewDetector()
		h.Times, h.interval, h.newest = []float64{1, 60}, 512<<10, 512<<10
		of := sites.Key{Class: sites.Class{Name: "x"}}
		h.Sites[of] = &history.Series{}
		got := h.misses(&r.Cursor, newHeads(r.Symbols), []candidate{{key: of, s: h.Sites[of],
			growth: growth{grown: grown, why: whyStopped}}}, nil, nil)
		if len(got) != 1 || got[0].Reason != want ||
			(want == "small") == strings.Contains(string(got[0].Text()), "it stopped") {
			t.Errorf("%.0f bytes: %+v, want %s", grown, got, want)
		}
	}
}
