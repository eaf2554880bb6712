package history

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestSurvival compares the curves of types with the truth of a model whose collections never lose an identity: every
// object's age at death.
func TestSurvival(t *testing.T) {
	compared := 0
	for seed := uint64(1); seed <= 20; seed++ {
		m := tracetest.New(tracetest.Config{Seed: seed, Collector: 2})
		var src analysistest.Source
		type life struct {
			typ        uint32
			born, last uint64
		}
		lives := map[uint64]*life{}
		last := uint64(0)
		ok := true
		for range 6 {
			e := m.Step(false)
			src.B = append(src.B, e.Blocks...)
			ok = ok && e.Pause.Kind == 1
			last = e.Pause.GC
			for _, o := range e.State {
				l := lives[o.ID]
				if l == nil {
					l = &life{o.Type, o.Entered, o.Entered}
					lives[o.ID] = l
				}
				l.last = last
			}
		}
		if !ok { // a full collection came
			continue
		}
		r := heap.NewReplay(&src)
		s, err := Survival(r, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range s.Types {
			var risk, lost [maxAge]float64
			for _, l := range lives {
				if r.TypeName(l.typ) != c.Class {
					continue
				}
				for k := uint64(0); l.born+k < last && l.born+k <= l.last; k++ {
					risk[k]++
					if l.born+k == l.last {
						lost[k]++
					}
				}
			}
			v := 1.0
			for k, got := range c.Survive {
				if math.Abs(got-v) > 1e-5 {
					t.Fatalf("seed %d, %s lives %d: %v, truth %v", seed, c.Class, k, got, v)
				}
				compared++
				if k < maxAge && risk[k] > 0 {
					v *= 1 - lost[k]/risk[k]
				}
			}
		}
		for _, c := range s.Sites {
			if !slices.IsSortedFunc(c.Survive, func(a, b float64) int { return int(math.Copysign(1, b-a)) }) ||
				c.Survive[0] != 1 {
				t.Fatalf("%v", c)
			}
		}
	}
	if compared < 50 {
		t.Fatalf("only %d points of curves", compared)
	}
}

// TestSurvivalUnknown: what could not be counted after a collection has not died there.
func TestSurvivalUnknown(t *testing.T) {
	m := tracetest.New(tracetest.Config{Seed: 3, Collector: 2})
	var src analysistest.Source
	for range 6 {
		src.B = append(src.B, m.Step(false).Blocks...)
	}
	x := newSurviving(heap.NewReplay(&src))
	calls, fold := 0, x.fold
	x.fold = func() ([]heap.Folded, error) {
		if calls++; calls%2 == 0 {
			return nil, errors.New("too many combinations")
		}
		return fold()
	}
	if err := x.follow(); err != nil {
		t.Fatal(err)
	}
	for typ, h := range x.types {
		if h.lost != [maxAge]float64{} {
			t.Errorf("type %d: %v are dead after collections that tell nothing", typ, h.lost)
		}
	}
	if calls < 4 || x.uncounted < calls/2 {
		t.Errorf("%d collections, %d are said not to count", calls, x.uncounted)
	}
}

// TestSurvivalLost: objects whose birth a full collection lost have not died, and the death of the last one of an age
// does not end a curve at 0.
func TestSurvivalLost(t *testing.T) {
	x := newSurviving(heap.NewReplay(&analysistest.Source{}))
	x.r.First = 5
	x.wasGC = 0
	var state []heap.Folded
	x.fold = func() ([]heap.Folded, error) { return state, nil }
	for gc, fs := range [][]heap.Folded{
		{{Type: 1, Birth: 1, Objects: 100}, {Type: 2, Birth: 1, Objects: 20}},
		{{Type: 1, Birth: 1, Objects: 90}, {Type: 2, Birth: 1, Objects: 2}},
		{{Type: 1, Birth: 2, AtLeast: true, Objects: 90}},
	} {
		state = fs
		x.objects(&heap.Collection{Pause: trace.Pause{GC: uint64(gc + 1)}})
	}
	if c := x.types[1].curve(); !reflect.DeepEqual(c, []float64{1, 0.9}) {
		t.Errorf("objects of unknown birth count as dead: %v", c)
	}
	if c := x.types[2].curve(); !reflect.DeepEqual(c, []float64{1, 0.1}) {
		t.Errorf("two objects end the curve: %v", c)
	}
}

// TestSort: histories that differ in their site alone come in one order.
func TestSort(t *testing.T) {
	h := func(method string) History {
		return History{Class: "a.B", Site: []sites.StackFrame{{Class: "x", Method: method}}, Bytes: []uint64{1}}
	}
	a, b := HeapHistory{Sites: []History{h("f"), h("g")}}, HeapHistory{Sites: []History{h("g"), h("f")}}
	a.sort()
	b.sort()
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%v, %v", a.Sites, b.Sites)
	}
}
