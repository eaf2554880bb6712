package leak

import (
	"math"
	"testing"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// often are collections of old space every five seconds.
func often() []float64 {
	return []float64{10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 59}
}

// session gives each of n sessions for ever, the others 2 to 10 s.
func session(n int) func(float64) float64 {
	i := 0
	return func(float64) float64 {
		if i++; n > 0 && i%n == 0 {
			return math.Inf(1)
		}
		return 2 + float64(i*7%9)
	}
}

// TestSeeps demands that a site is a leak of which most objects die and the others pile up, and nothing else is.
func TestSeeps(t *testing.T) {
	rising := func(from, to float64) (out []object) { // times as many a second at the end
		life := session(0)
		for x, n := 0.0, 0; x < 60; n++ {
			out = append(out, object{1, x, x + life(x)})
			x += 1 / (from + (to-from)*x/60)
		}
		return out
	}
	fills := func(per float64, stays float64) (out []object) { // ever fewer keys are new, and few are dropped
		for i := 1.0; ; i++ {
			x := 60 * math.Pow(i/(per*60), 2)
			if x >= 60 {
				return out
			}
			dies := math.Inf(1)
			if int(i)%10 >= int(10*stays) {
				dies = x + 20
			}
			out = append(out, object{1, x, dies})
		}
	}
	for name, c := range map[string]struct {
		objects []object
		want    int
	}{
		"one session in five stays":     {births(1, 20, session(5)), 1},
		"all are closed":                {births(1, 20, session(0)), 0},
		"all are closed, and more come": {rising(10, 30), 0},
		"a cache that fills up":         {fills(10, 1), 0},
		"the same, a few are dropped":   {fills(10, 0.8), 0},
		"objects that live for 25 s":    {births(1, 10, lives(25)), 0},
	} {
		c.objects = append(c.objects, births(2, 20, lives(0.1))...) // what else the program does
		r, h := world(c.objects, every(often(), nil))
		l := h.Report(&r.Cursor)
		if len(l.Verdicts) != c.want {
			t.Errorf("%s: %+v, %+v", name, l.Verdicts, l.Misses)
		}
		if c.want > 0 && len(l.Verdicts) > 0 && (l.Verdicts[0].Kind != KindLeak || !l.Verdicts[0].seeps) {
			t.Errorf("%s: %+v", name, l.Verdicts[0])
		}
	}
}

// TestStays: with two or three collections of old space, what is older than any session in use shows that some stay: a
// suspect. Neither sessions that are all closed, nor objects that live for long, nor a load that rises leave such.
func TestStays(t *testing.T) {
	long := func(share, life float64) func(float64) float64 { // a share of the objects lives for so long
		i := 0.0
		return func(float64) float64 {
			if i += share; i >= 1 {
				i--
				return life
			}
			return 1
		}
	}
	for name, c := range map[string]struct {
		objects []object
		want    int
	}{
		"one session in five stays":     {births(1, 20, session(5)), 1},
		"all are closed":                {births(1, 20, session(0)), 0},
		"a fifth lives for 20 s":        {births(1, 20, long(0.2, 20)), 0},
		"a fifth lives for 30 s":        {births(1, 20, long(0.2, 30)), 0},
		"a few stay that came at first": {append(births(1, 20, long(0, 0)), births(1, 1, lives(1))...), 0},
		"objects that live for 25 s":    {births(1, 10, lives(25)), 0},
	} {
		c.objects = append(c.objects, births(2, 20, lives(0.1))...) // what else the program does
		for _, floors := range [][]float64{{30, 59}, {30, 45, 59}} {
			r, h := world(c.objects, every(floors, nil))
			l := h.Report(&r.Cursor)
			if len(l.Verdicts) != c.want {
				t.Errorf("%s, %d: %+v, %+v", name, len(floors), l.Verdicts, l.Misses)
			}
			if c.want > 0 && len(l.Verdicts) > 0 && l.Verdicts[0].Kind != KindSuspect {
				t.Errorf("%s, %d: %+v", name, len(floors), l.Verdicts[0])
			}
		}
	}
}

// oneLine makes one line of sites 1, 2 and so on, each of another caller.
func oneLine(r *heap.Replay, callers ...string) {
	for i, caller := range callers {
		site, at := uint64(i+1), uint64(i+11)
		r.Methods[at] = trace.Method{ID: at, Class: "Lshop/Web;", Name: caller}
		r.Frames[at] = trace.Frame{ID: at, Method: at}
		r.Frames[site] = trace.Frame{ID: site, Parent: at, Method: 1}
	}
}

// TestEndedCallers demands that what a line made for a caller that has ended is no part of a leak from that line.
func TestEndedCallers(t *testing.T) {
	var objects []object
	for i := range 60 { // what a program reads in at its start
		objects = append(objects, object{1, float64(i) / 10, math.Inf(1)})
	}
	for _, o := range births(2, 1, forever) {
		if o.born > 3 {
			objects = append(objects, o)
		}
	}
	objects = append(objects, births(3, 20, lives(0.1))...)
	r, h := world(objects, every([]float64{20, 30, 40, 50, 58}, nil))
	oneLine(r, "start", "request")
	l := h.Report(&r.Cursor)
	if len(l.Verdicts) != 1 {
		t.Fatalf("%+v, %+v", l.Verdicts, l.Misses)
	}
	v := l.Verdicts[0] // 1 sample/s of 500 objects of 1000 bytes
	if v.Kind != KindLeak || v.BytesPerSecond < 400e3 || v.BytesPerSecond > 600e3 || v.LiveSamples > 60 {
		t.Errorf("%+v", v)
	}
}

// TestCutOff demands that a leak is one, too, in a window whose begin is gone: what there was before it is no growth of
// the window.
func TestCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		life func(float64) float64
		kind string
	}{"leak": {forever, KindLeak}, "cache that is full": {lives(15), ""}} {
		var events []event
		for _, e := range every([]float64{45, 58}, nil) {
			if e.t >= 30 {
				events = append(events, e)
			}
		}
		objects := append(births(1, 8, c.life), births(2, 20, lives(0.1))...)
		r, h := world(objects, events)
		h.From = 29.5
		l, kind := h.Report(&r.Cursor), ""
		if len(l.Verdicts) > 0 {
			kind = l.Verdicts[0].Kind
		}
		if kind != c.kind {
			t.Errorf("%s: %+v, %+v", name, l.Verdicts, l.Misses)
		}
	}
}

// TestRenewed demands that objects which take the place of those that their line made for another caller are no leak.
func TestRenewed(t *testing.T) {
	var objects []object
	for i := range 150 { // read in within 5 s, and dropped one by one from 10 s on
		objects = append(objects, object{1, float64(i) / 30, 10 + float64(i)/3})
	}
	for _, o := range births(2, 3, forever) { // one that is new for each
		if o.born > 10 {
			objects = append(objects, o)
		}
	}
	objects = append(objects, births(3, 20, lives(0.1))...)
	r, h := world(objects, every([]float64{20, 30, 40, 50, 58}, nil))
	oneLine(r, "start", "renew")
	if l := h.Report(&r.Cursor); len(l.Verdicts) != 0 {
		t.Errorf("%+v, %+v", l.Verdicts, l.Misses)
	}
}
