package sites

import (
	"testing"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// TestJoined: two bytecodes of one line are one site, callers included; other lines, callers and classes are not. A
// circle of frames, which only damage can make, is left as it is.
func TestJoined(t *testing.T) {
	m := trace.Method{ID: 1, Class: "LShop;", Name: "add", File: "Shop.java",
		Lines: []trace.LineEntry{{BCI: 0, Line: 7}, {BCI: 20, Line: 8}}}
	r := &heap.Symbols{Methods: map[uint64]trace.Method{1: m}, Frames: map[uint64]trace.Frame{}}
	for _, f := range []trace.Frame{
		{ID: 1, Method: 1, BCI: 3}, {ID: 2, Method: 1, BCI: 9}, // line 7
		{ID: 3, Method: 1, BCI: 30}, // line 8
		{ID: 4, Parent: 1, Method: 1, BCI: 30}, {ID: 5, Parent: 2, Method: 1, BCI: 30},
		{ID: 6, Parent: 3, Method: 1, BCI: 30},
		{ID: 7, Parent: 8, Method: 1, BCI: 3}, {ID: 8, Parent: 7, Method: 1, BCI: 3},
	} {
		r.Frames[f.ID] = f
	}
	by := map[Key]*Tally{}
	for id := range r.Frames {
		for _, class := range []string{"A", "B"} {
			if class == "A" || id < 2 {
				by[Key{id, Class{Name: class}}] = &Tally{n: id}
			}
		}
	}
	got := joined(by, alike(r, by))
	want := map[Key]uint64{{1, Class{Name: "A"}}: 3, {3, Class{Name: "A"}}: 3, {4, Class{Name: "A"}}: 9,
		{6, Class{Name: "A"}}: 6, {7, Class{Name: "A"}}: 7, {8, Class{Name: "A"}}: 8, {1, Class{Name: "B"}}: 1}
	if len(got) != len(want) {
		t.Errorf("%d sites, want %d", len(got), len(want))
	}
	for k, n := range want {
		if got[k] == nil || got[k].n != n {
			t.Errorf("%v has %+v, want %d samples", k, got[k], n)
		}
	}
}
