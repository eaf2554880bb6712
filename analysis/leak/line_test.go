package leak

import (
	"math"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// TestLine: a line that calls twice what allocates leaks now by the one call, now by the other, as a text that is cut
// and then trimmed. It is one suspect with one member, and what the line made and left nothing of is none.
func TestLine(t *testing.T) {
	first := func(born float64) float64 {
		if born < 30 {
			return 1000
		}
		return 0.1
	}
	second := func(born float64) float64 { return 1000.1 - first(born) }
	objects := append(births(1, 8, first), births(2, 8, second)...)
	objects = append(objects, births(3, 8, lives(0.1))...)
	r, h := world(objects, every(nil, nil))
	m := r.Methods[1]
	m.Lines = []trace.LineEntry{{BCI: 0, Line: 17}}
	r.Methods[1] = m
	for i := range uint64(3) {
		r.Frames[i+1] = trace.Frame{ID: i + 1, Method: 1, BCI: int64(8 * i)}
	}
	h.node[1] = true // what holds them grows
	for i := range h.Times {
		h.nodes = append(h.nodes, uint64(4000*(i+1)))
	}
	l := h.Report(&r.Cursor)
	if len(l.Verdicts) != 1 || len(l.Verdicts[0].Members) != 1 {
		t.Fatalf("%+v, %+v", l.Verdicts, l.Misses)
	}
	if v := l.Verdicts[0]; v.Kind != KindSuspect || v.Place.Line == nil || *v.Place.Line != 17 {
		t.Errorf("%+v", v)
	}
	s := &structure{}
	c := candidate{}
	for i := range uint64(3) {
		c.members = append(c.members, sites.Key{Frame: i + 1, Class: sites.Class{Name: "shop.Order"}})
	}
	c.slope, c.grown = 1, 1
	if s.add(h, r.Symbols, &c, map[sites.Key]bool{}); len(s.keys) != 2 {
		t.Errorf("%d sites of the line are left", len(s.keys))
	}
}

// TestSoft: what a listing shows soft references alone to hold is no leak, whatever their class is; nor are the
// references themselves, and what they are in, as many in the same method.
func TestSoft(t *testing.T) {
	for name, soft := range map[string]bool{"strong": false, "soft": true} {
		r, h := world(append(births(1, 8, forever), births(2, 8, forever)...), every(nil, []float64{50}))
		r.Frames[2] = trace.Frame{ID: 2, Method: 1, BCI: 8}
		h.Soft = func(keys []sites.Key) bool { return soft && len(keys) == 1 && keys[0].Frame == 1 }
		l := h.Report(&r.Cursor)
		if soft != (len(l.Verdicts) == 0) || soft && (len(l.Misses) == 0 || l.Misses[0].Reason != "soft") {
			t.Errorf("%s: %+v, %+v", name, l.Verdicts, l.Misses)
		}
	}
}

// TestByHolder: what one object holds is one verdict, wherever it is allocated.
func TestByHolder(t *testing.T) {
	for name, c := range map[string]struct {
		holders [2]ui.Flow
		want    int
	}{
		"one map":   {[2]ui.Flow{"static A.m → Map.table, then [] → Node.key", "static A.m → Map.table, then []"}, 1},
		"two maps":  {[2]ui.Flow{"static A.m → Map.table, then []", "static A.n → Map.table, then []"}, 2},
		"not known": {[2]ui.Flow{"", ""}, 2},
		"branches of one tree": {[2]ui.Flow{"static A.t → TreeMap.root → Entry.right, then Entry.left",
			"static A.t → TreeMap.root, then Entry.left/right ×11 → Entry.key"}, 1},
		"two fields of one object": {[2]ui.Flow{"static A.o → O.a, then []", "static A.o → O.b, then []"}, 2},
		"one list": {[2]ui.Flow{"static A.q → Queue.head → Node.next ×23, then Node.next ×9 → Node.item",
			"static A.q → Queue.head → Node.next ×21"}, 1},
		"of many": {[2]ui.Flow{"static A.m → [] → Node.value, then []", "static A.m → [] → Node.value, then []"}, 2},
		"entries and values": {[2]ui.Flow{"static A.m → [] → Node.value, then [] → Order.value",
			"static A.m → [] → Node.value, then []"}, 1},
		"other entries": {[2]ui.Flow{"static A.m → [] → Node.value, then [] → Other.value",
			"static A.m → [] → Node.value, then []"}, 2},
	} {
		r, h := world(append(births(1, 8, forever), births(2, 4, forever)...), every(nil, []float64{50}))
		h.Holder = func(keys []sites.Key, _ uint64) ui.Flow { return c.holders[keys[0].Frame-1] }
		l := h.Report(&r.Cursor)
		if len(l.Verdicts) != c.want || l.Verdicts[0].Place.Method != "m1" {
			t.Errorf("%s: %+v", name, l.Verdicts)
			continue
		}
		if v := l.Verdicts[0]; len(v.Members) != 3-c.want || c.want == 1 && v.LiveSamples < 650 {
			t.Errorf("%s: %d samples of %+v", name, v.LiveSamples, v.Members)
		}
	}
}

// TestSwaps: objects that come into the table that others of their class are in may take their place: few samples of
// the others, taken while the sampling interval was long, need not show that.
func TestSwaps(t *testing.T) {
	for name, c := range map[string]struct {
		holder ui.Flow
		each   float64 // of how many objects a sample of the others tells, compared with one of those that come
		want   int
	}{
		"one table, few samples":  {"static A.m → Map.table, then []", 64, 0},
		"one table, many samples": {"static A.m → Map.table, then []", 1, 1},
		"two tables":              {"static A.n → Map.table, then []", 64, 1},
	} {
		var objects []object
		for range 60 {
			objects = append(objects, object{1, 0.5, math.Inf(1)})
		}
		for at := 2.25; at < 58; at++ {
			objects = append(objects, object{2, at, math.Inf(1)})
		}
		r, h := world(objects, every(nil, []float64{30, 50}))
		for k, s := range h.Sites {
			if k.Frame == 1 {
				s.Scale(c.each)
			}
		}
		h.Holder = func(keys []sites.Key, _ uint64) ui.Flow {
			return map[uint64]ui.Flow{1: "static A.m → Map.table, then []", 2: c.holder}[keys[0].Frame]
		}
		l := h.Report(&r.Cursor)
		if len(l.Verdicts) != c.want || c.want == 0 && (len(l.Misses) == 0 || l.Misses[0].Reason != "replaced") {
			t.Errorf("%s: %+v, %+v", name, l.Verdicts, l.Misses)
		}
	}
}

// TestEndedExhaustion: the heap of a JVM that has ended does not get full at a time to come.
func TestEndedExhaustion(t *testing.T) {
	for _, ended := range []bool{false, true} {
		r, h := world(births(1, 8, forever), every(nil, []float64{30, 50}))
		for i := range h.Live {
			h.Live[i] = float64(i+1) * 4e6
		}
		if ended {
			r.End = &trace.End{Reason: trace.EndDeath, Time: 60e9}
		}
		l := h.Report(&r.Cursor)
		if len(l.Verdicts) != 1 {
			t.Fatalf("%+v", l)
		}
		text := string(l.Verdicts[0].Sentence)
		if strings.Contains(text, " would have been full about ") != ended || strings.Contains(text, ", at ") == ended {
			t.Errorf("ended %v: %s", ended, text)
		}
	}
}

// TestLineEnds: sites of one line that have all stopped to allocate are no leak, though each alone has too few samples
// to show it. One that goes on is.
func TestLineEnds(t *testing.T) {
	for name, ends := range map[string]float64{"ends": 48, "goes on": 60} {
		const n = 5
		var objects []object
		for site := range uint64(n) {
			for _, o := range births(site+1, 0.8, forever) {
				if o.born < ends {
					o.born += float64(site) / 10
					objects = append(objects, o)
				}
			}
		}
		objects = append(objects, births(n+1, 20, lives(0.1))...)
		r, h := world(objects, every([]float64{15, 30, 45, 55}, nil))
		m := r.Methods[1]
		m.Lines = []trace.LineEntry{{BCI: 0, Line: 17}}
		r.Methods[1] = m
		for i := range uint64(n) {
			r.Frames[i+1] = trace.Frame{ID: i + 1, Method: 1, BCI: int64(8 * i)}
		}
		if l := h.Report(&r.Cursor); len(l.Verdicts) == 0 == (ends == 60) {
			t.Errorf("%s: %+v", name, l.Verdicts)
		}
	}
}
