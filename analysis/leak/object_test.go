package leak

import (
	"slices"
	"testing"

	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// TestOneObject: what the same object holds is one verdict, also where the text does not say which object it is.
func TestOneObject(t *testing.T) {
	for name, c := range map[string]struct {
		objects [2]uint64
		want    int
	}{"one object": {[2]uint64{7, 7}, 1}, "two objects": {[2]uint64{7, 8}, 2}, "not known": {[2]uint64{0, 0}, 2}} {
		r, h := world(append(births(1, 8, forever), births(2, 4, forever)...), every(nil, []float64{50}))
		h.Holder = func([]sites.Key, uint64) ui.Flow { return "static A.m → [] → Map.table, then []" }
		h.Object = func(keys []sites.Key, _ uint64) uint64 { return c.objects[keys[0].Frame-1] }
		if l := h.Report(&r.Cursor); len(l.Verdicts) != c.want {
			t.Errorf("%s: %+v", name, l.Verdicts)
		}
	}
}

// TestInside: few samples of what a full cache holds are no suspect, if more samples of it show that it drops its
// objects.
func TestInside(t *testing.T) {
	for name, c := range map[string]struct {
		object uint64 // that holds what grows; the cache is 7
		want   bool
	}{"in the cache": {7, false}, "in another object": {8, true}} {
		objects := append(births(1, 2, lives(25)), births(3, 20, lives(0.1))...)
		for i := range 9 { // entries: too few samples to show that the old ones are dropped
			objects = append(objects, object{2, 3 + 6.2*float64(i), 1e6})
		}
		r, h := world(objects, every(nil, []float64{57}))
		h.Holder = func(keys []sites.Key, _ uint64) ui.Flow {
			return map[uint64]ui.Flow{1: "static A.m → Map.table, then []",
				2: "static A.m → Map.head, then Node.next"}[keys[0].Frame]
		}
		h.Object = func(keys []sites.Key, _ uint64) uint64 {
			return map[uint64]uint64{1: 7, 2: c.object}[keys[0].Frame]
		}
		l := h.Report(&r.Cursor)
		named := slices.ContainsFunc(l.Verdicts, func(v Verdict) bool { return v.Place.Method == "m2" })
		if named != c.want {
			t.Errorf("%s: %+v, %+v", name, l.Verdicts, l.Misses)
		}
	}
}

// TestWayOf: the ways to objects of one data structure are the same but for how many there are of them, and for the end
// of a list that they begin at.
func TestWayOf(t *testing.T) {
	const context = "Thread.threadLocals → ThreadLocalMap.table"
	for _, c := range []struct {
		own, other ui.Flow
		class      string
		want       bool
	}{
		{"9 objects, each reached by " + context + " → [] → Entry.value",
			"10 objects, each reached by " + context + ", then [] → Entry.value → Context.attributes",
			"app/Outer$Context", true},
		{"static Pool.all, then [] → LinkedList.last → Node.prev ×459 → Node.item",
			"static Pool.all, then [] → LinkedList.first → Node.next ×112 → Node.item → Statement.rows",
			"app.Statement", true},
		{"static Pool.all → [] → Node.item", "static Pool.all → [] → Node.item → Other.rows", "app.Statement", false},
		{"static Pool.all", "static Pool.other → Statement.rows", "app.Statement", false},
		{"", " → Statement.rows", "app.Statement", false},
	} {
		s := &structure{keys: []sites.Key{{Class: sites.Class{Name: c.class}}}}
		if got := s.leads(c.own, c.other); got != c.want {
			t.Errorf("%s leads to %s: %v", c.own, c.other, got)
		}
	}
}

// TestFullOfOne: what one object holds fills a heap as one, though many methods allocate it, and none of them much.
// Without an object that holds it, none is named that has less than a tenth.
func TestFullOfOne(t *testing.T) {
	const methods = 15
	for name, c := range map[string]struct {
		object func(frame uint64) uint64
		want   int // verdicts
	}{"one object": {func(uint64) uint64 { return 7 }, 1}, "each its own": {func(f uint64) uint64 { return f }, 0}} {
		r, h := ramped(trace.PauseFull, func(i int) float64 { return min(20+float64(i)*3.8, 96) })
		h.Sites = map[sites.Key]*history.Series{}
		for m := range uint64(methods) {
			r.Methods[m+1] = trace.Method{ID: m + 1, Class: "La/A;", Name: string(rune('a' + m))}
			r.Frames[m+1] = trace.Frame{ID: m + 1, Method: m + 1}
			v := make([]float64, len(h.Times))
			for i := range v {
				v[i] = min(float64(i)*3.8, 76) * (1 << 20) / methods
			}
			h.Sites[key(m+1)] = dense(v)
		}
		h.Holder = func([]sites.Key, uint64) ui.Flow { return "static A.m → Map.table" }
		h.Object = func(keys []sites.Key, _ uint64) uint64 { return c.object(keys[0].Frame) }
		l := h.Report(&r.Cursor)
		if len(l.Verdicts) != c.want {
			t.Errorf("%s: %+v", name, l.Verdicts)
		}
		if c.want == 1 && len(l.Verdicts) == 1 {
			if v := l.Verdicts[0]; v.Kind != KindFills || v.HeapShare < 0.7 || v.HeapShare > 0.85 {
				t.Errorf("%s: %+v", name, v)
			}
		}
	}
}
