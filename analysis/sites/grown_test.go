package sites

import (
	"testing"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// TestWithin: no site grows by more than its class did and other sites of the class shrank.
func TestWithin(t *testing.T) {
	a, b := Class{Name: "a.A"}, Class{Name: "b.B"}
	key := func(c Class, frame uint64) Key { return Key{Frame: frame, Class: c} }
	all := []grown{{key(a, 1), 5, 50, 500}, {key(a, 2), 5, 50, 500}, {key(b, 3), 9, 90, 900},
		{key(b, 4), -4, -40, -400}}
	within(all, map[Class]*grown{a: {objects: 60, bytes: 600}, b: {objects: 50, bytes: 500}})
	for i, want := range []float64{300, 300, 900, -400} {
		if all[i].bytes != want || all[i].objects != want/10 {
			t.Errorf("site %d: %+v, want %v bytes", i+1, all[i], want)
		}
	}
	full := []grown{{key(a, 1), 5, 50, 500}} // as many as before: they took the place of older ones
	if within(full, map[Class]*grown{a: {objects: -1, bytes: -10}}); full[0].bytes != 0 {
		t.Errorf("%+v", full)
	}
	var r heap.Symbols
	r.Types = map[uint64]trace.Type{1: {ID: 1, Name: "a/A"}}
	got := growthOf(&r, []heap.Count{{}, {Objects: 3, Bytes: 30}}, []heap.Count{{}, {Objects: 9, Bytes: 90}})
	if g := got[ClassOf(&r, 1).Folded()]; g == nil || g.objects != 6 || g.bytes != 60 {
		t.Errorf("%+v", got)
	}
}
