package leak

import (
	"testing"

	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/trace"
)

// TestKeepsAge has few collections, the first of two reference listings six seconds after its collection. What died in
// between is missing there, so that a full queue seems to grow. But its oldest objects are as old each time. In a queue
// whose consumer is too slow they are older.
func TestKeepsAge(t *testing.T) {
	var events []event
	for at := 3.0; at <= 60; at += 3 {
		e := event{t: at, kind: trace.PauseYoung}
		switch at {
		case 24:
			e.listing, e.after = true, 6
		case 45:
			e.listing, e.after = true, 0.5
		}
		events = append(events, e)
	}
	for name, c := range map[string]struct {
		life  func(float64) float64
		rises bool
		named bool
	}{
		"full queue of 10 s":                     {life: lives(10)},
		"full queue of 10 s, the load doubles":   {life: lives(10), rises: true},
		"queue whose consumer is too slow":       {life: queued(3), named: true},
		"the same, slower":                       {life: queued(1.8), named: true},
		"leak":                                   {life: forever, named: true},
		"window of 20 s that was full at 20 s":   {life: lives(20)},
		"leak beside what lives for ten seconds": {life: beside(10), named: true},
	} {
		objects := births(1, 40, c.life)
		if c.rises {
			for _, o := range births(1, 40, c.life) {
				if o.born > 30 {
					objects = append(objects, o)
				}
			}
		}
		r, h := world(objects, events)
		deque(h, func(t float64) float64 { return t * 40 * 500 })
		l := h.Report(&r.Cursor)
		if named := len(l.Verdicts) > 0; named != c.named {
			t.Errorf("%s: named %v; %+v", name, named, l.Misses)
		}
		for _, v := range l.Verdicts {
			t.Logf("%s: %s", name, v.Sentence)
		}
	}
}

// beside lets every second object live for ever, and the others for some seconds.
func beside(seconds float64) func(float64) float64 {
	n := 0
	return func(born float64) float64 {
		if n++; n%2 == 0 {
			return seconds
		}
		return forever(born)
	}
}

// TestSawtoothAges: two maps that are replaced each 50 seconds. At five floors the oldest objects happen to be ever
// older from the second on, but not older than at the first. Those of a queue that grows are older each time.
func TestSawtoothAges(t *testing.T) {
	ages := func(all ...[2]float64) *history.Series {
		s := &history.Series{}
		for _, a := range all {
			s.Aged = append(s.Aged, history.Age{T: a[0], Oldest: a[0] - a[1], N: 500})
		}
		return s
	}
	h := NewDetector()
	h.Times = []float64{10, 300}
	if !h.keepsAge(ages([2]float64{68, 66}, [2]float64{102, 50}, [2]float64{152, 51}, [2]float64{269, 67},
		[2]float64{290, 88})) {
		t.Error("maps that are replaced: the age is said to grow")
	}
	if h.keepsAge(ages([2]float64{60, 20}, [2]float64{120, 41}, [2]float64{180, 60}, [2]float64{290, 97})) {
		t.Error("a queue that grows: the age is said to stay")
	}
	if h.keepsAge(ages([2]float64{60, 59}, [2]float64{120, 119}, [2]float64{290, 289})) {
		t.Error("a leak: the age is said to stay")
	}
}
