package leak

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/trace"
)

// deque gives the lengths of the array of a queue that grows in steps of a half while it holds what size gives at a
// time, in objects.
func deque(h *detector, size func(t float64) float64) {
	a := &lengths{seen: map[uint64]int32{}, rose: map[uint64]rises{}, now: map[uint64]uint64{}}
	n := uint64(64)
	for i, t := range h.Times {
		for float64(n) < size(t) {
			n += n / 2
		}
		if _, ok := a.seen[n]; !ok {
			a.seen[n], a.rose[n] = int32(i), rises{1, []int32{int32(i)}}
			a.most, a.at = append(a.most, n), append(a.at, int32(i))
		}
	}
	a.now[n] = 1
	h.arrays[1] = a
}

// TestSettled judges windows of which the newest floor, a full collection or a reference listing, shows what lives. A
// cache and a queue that are full look like leaks until then.
func TestSettled(t *testing.T) {
	const per, each = 8, 500 // samples a second, and objects a sample
	for name, c := range map[string]struct {
		life           func(float64) float64
		full, listings []float64
		holds          func(t float64) float64 // objects that its array has room for; nil: no array
		kind           string                  // "": none
		reason         string                  // "": not listed, or named
		rises          bool                    // the load, to three times as much after 30 s
		fills          bool                    // half of what can come has after 20 s
	}{
		"leak, two listings":         {life: forever, listings: []float64{30, 45}, kind: KindLeak},
		"leak, two full collections": {life: forever, full: []float64{30, 50}, kind: KindLeak},
		// one does not tell it from a cache that fills up
		"leak, a listing":         {life: forever, listings: []float64{50}, kind: KindSuspect},
		"leak, a full collection": {life: forever, full: []float64{50}, kind: KindSuspect},
		"two, but near":           {life: forever, full: []float64{45, 50}, kind: KindSuspect},
		"cache of 100 s":          {life: lives(100), listings: []float64{50}, kind: KindSuspect},
		"cache of bounded keys":   {life: forever, full: []float64{30, 45}, reason: "fills", fills: true},
		"leak, listed early": {life: forever, listings: []float64{10}, kind: KindSuspect,
			holds: func(t float64) float64 { return t * per * each }},
		"full cache, a listing":         {life: lives(10), listings: []float64{50}, reason: "turnover"},
		"full cache, a full collection": {life: lives(10), full: []float64{50}, reason: "turnover"},
		"full cache of 40 s, a listing": {life: lives(40), listings: []float64{55}, reason: "turnover",
			holds: func(t float64) float64 { return min(t, 40) * per * each }},
		"full cache of 30 s, listed twice": {life: lives(30), listings: []float64{45, 58}, reason: "turnover"},
		"full queue of 20 s": {life: lives(20), full: []float64{50}, reason: "turnover",
			holds: func(t float64) float64 { return min(t, 20) * per * each }},
		"queue whose consumer is too slow, two floors": {life: queued(3), full: []float64{30, 58},
			kind: KindSuspect},
		"the same, three floors": {life: queued(3), full: []float64{20, 40, 58}, kind: KindLeak},
		"queue whose consumer is too slow, one floor": {life: queued(3), full: []float64{57}, kind: KindSuspect,
			holds: func(t float64) float64 { return t * 2 / 3 * per * each }},
		"the same, listed": {life: queued(3), listings: []float64{57}, kind: KindSuspect,
			holds: func(t float64) float64 { return t * 2 / 3 * per * each }},
		"a full cache beside a list of another size": {life: lives(30), full: []float64{57}, reason: "turnover",
			holds: func(t float64) float64 { return t / 60 * 80 * per * each }},
		"a queue whose load rises, one floor": {life: lives(8), full: []float64{57}, reason: "turnover", rises: true,
			holds: func(t float64) float64 { return min(t, 8) * (1 + 2*min(1, max(0, t-30)/8)) * per * each }},
		"the same, linked": {life: queued(3), full: []float64{57}, reason: "turnover"},
	} {
		objects := births(1, per, c.life)
		if c.rises {
			for _, o := range births(1, 2*per, c.life) {
				if o.born > 30 {
					objects = append(objects, o)
				}
			}
		}
		if c.fills {
			objects = slices.DeleteFunc(objects, func(o object) bool {
				return math.Mod(o.born*1000*math.Phi, 1) > math.Exp2(-o.born/20)
			})
			objects = append(objects, births(2, 16, lives(0.3))...) // the program goes on
		}
		r, h := world(objects, every(c.full, c.listings))
		if c.holds != nil {
			deque(h, c.holds)
		}
		l := h.Report(&r.Cursor)
		kind, reason := "", ""
		if len(l.Verdicts) > 0 {
			kind = l.Verdicts[0].Kind
		}
		if len(l.Misses) > 0 {
			reason = l.Misses[0].Reason
		}
		if kind != c.kind || reason != c.reason {
			t.Errorf("%s: %q, not named because %q; want %q and %q", name, kind, reason, c.kind, c.reason)
		}
		for _, v := range l.Verdicts {
			t.Logf("%s: %s", name, v.Sentence)
			if once := v.Kind == KindSuspect && !v.queued; once != strings.Contains(string(v.Sentence),
				" % of the growth alive") {
				t.Errorf("%s: %s", name, v.Sentence)
			}
			// What dies need not be consumed: it may be the entries of a registry.
			if p := string(v.Proof()); v.queued != strings.Contains(p, "empties too slowly") ||
				strings.Contains(p, "consumer") {
				t.Errorf("%s: %s", name, p)
			}
			if v.Reached != (len(c.listings) > 0 && v.Kind == KindLeak) {
				t.Errorf("%s: reached %v", name, v.Reached)
			}
		}
	}
}

// TestStarved: a program that hardly gets any CPU in the last third of a window leaks no less, by the bytes that it
// allocates. A site that stops while the program goes on has stopped.
func TestStarved(t *testing.T) {
	slower := func(all []object) (out []object) { // of what comes after 40 s, one of sixteen
		for i, o := range all {
			if o.born < 40 || i%16 == 0 {
				out = append(out, o)
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		leak, others []object
		want         bool
	}{
		"both are slower":       {slower(births(1, 8, forever)), slower(births(2, 16, lives(0.3))), true},
		"one is, nothing else":  {slower(births(1, 8, forever)), births(2, 16, lives(0.3)), false},
		"neither is slower":     {births(1, 8, forever), births(2, 16, lives(0.3)), true},
		"a cache that is full":  {births(1, 8, lives(5)), slower(births(2, 16, lives(0.3))), false},
		"a cache that is empty": {nil, slower(births(2, 16, lives(0.3))), false},
	} {
		r, h := world(append(c.leak, c.others...), every([]float64{20, 35, 58}, nil))
		l := h.Report(&r.Cursor)
		if len(l.Verdicts) == 1 != c.want || c.want && l.Verdicts[0].Place.Method != "m1" {
			t.Errorf("%s: %+v, %+v", name, l.Verdicts, l.Misses)
		}
		if c.want && (l.Verdicts[0].Against == "allocation") != (name == "both are slower") {
			t.Errorf("%s: judged against %s", name, l.Verdicts[0].Against)
		}
	}
}

// TestFullStructures names no cache and no queue that is full, whatever its age and whenever its array grew to its
// size, in a hundred windows with one floor.
func TestFullStructures(t *testing.T) {
	const each = 500
	for i := range 100 {
		age := 5 + float64(i%10)*4.5
		per := 4 + float64(i/10)
		at := 58 - float64(i%7)
		events := every([]float64{at}, nil)
		if i%2 == 1 {
			events = every(nil, []float64{at})
		}
		r, h := world(births(1, per, lives(age)), events)
		if i%4 == 0 { // a few large objects, beside an array of as many that grows to the end
			for _, s := range h.Sites {
				s.Objects = s.Taken
			}
			deque(h, func(t float64) float64 { return t * age / 60 * per })
		}
		if i%4 != 0 {
			deque(h, func(t float64) float64 { return min(t, age) * per * each * (1 + float64(i%3)/4) })
		}
		if l := h.Report(&r.Cursor); len(l.Verdicts) > 0 {
			t.Errorf("%v s, %v a second, floor at %v: %s", age, per, at, l.Verdicts[0].Sentence)
		}
	}
}

// TestBeside: where as many objects of one method are known to be dropped, the others are no suspects. They are if
// more of them live, or if floors show that they live.
func TestBeside(t *testing.T) {
	some := func(n int) func(float64) float64 { // one of n dies while it is young, after it has survived two
		return func(born float64) float64 {
			if int(born*97)%n == 0 {
				return 3.5
			}
			return 1000
		}
	}
	for name, c := range map[string]struct {
		other func(float64) float64 // nil: none
		full  []float64
		want  bool
	}{
		"alone":                            {nil, nil, true},
		"some of the others are dead":      {some(5), nil, false},
		"hardly any":                       {some(40), nil, true},
		"most of the others are dead":      {lives(3.5), nil, true},
		"some are dead, but floors say it": {some(5), []float64{25, 50}, true},
	} {
		objects := births(1, 8, forever)
		if c.other != nil {
			objects = append(objects, births(2, 8, c.other)...)
		}
		r, h := aged(6, objects, every(c.full, nil))
		r.Frames[2] = trace.Frame{ID: 2, Method: 1, BCI: 8} // one method, two lines, two classes
		if s := h.series(2); s != nil {
			delete(h.Sites, sites.Key{Frame: 2, Class: sites.Class{Name: "shop.Order"}})
			h.Sites[sites.Key{Frame: 2, Class: sites.Class{Name: "shop.Line"}}] = s
		}
		for i := range h.Times { // linked nodes grow: nothing else speaks against a leak
			h.nodes = append(h.nodes, uint64(1000*(i+1)))
		}
		l := h.Report(&r.Cursor)
		if named := len(l.Verdicts) > 0 && l.Verdicts[0].Class == "shop.Order"; named != c.want {
			t.Errorf("%s: %+v, %+v", name, l.Verdicts, l.Misses)
		}
	}
}

// TestCopies: what a line makes and drops at once says nothing of what it keeps: older objects of a leak are not dead
// because a text needed a copy more at first.
func TestCopies(t *testing.T) {
	objects := births(1, 8, forever)
	for _, o := range births(1, 8, lives(0.1)) {
		if o.born < 20 {
			objects = append(objects, o)
		}
	}
	r, h := world(objects, every(nil, []float64{30, 55}))
	l := h.Report(&r.Cursor)
	if len(l.Verdicts) != 1 || l.Verdicts[0].Kind != KindLeak {
		t.Errorf("%+v, %+v", l.Verdicts, l.Misses)
	}
}
