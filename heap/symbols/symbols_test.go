package symbols

import (
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// TestSameStack: if the probe evicted a stack and sees it again, the stack gets new ids. Both are one site.
func TestSameStack(t *testing.T) {
	r := New()
	frames := []trace.Frame{{ID: 1, Method: 7, BCI: 3}, {ID: 2, Parent: 1, Method: 8},
		{ID: 3, Parent: 1, Method: 8, BCI: 5},
		{ID: 10, Method: 7, BCI: 3}, {ID: 11, Parent: 10, Method: 8}, {ID: 12, Parent: 10, Method: 9}}
	for range 2 { // each file repeats what it uses
		if err := r.Define(trace.EncodeDefs(trace.Defs{Frames: frames})); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[uint64]uint64{0: 0, 1: 1, 2: 2, 3: 3, 10: 1, 11: 2, 12: 12} {
		if got := r.Site(id); got != want {
			t.Errorf("frame %d is %d, want %d", id, got, want)
		}
	}
	if f := r.Frames[12]; f.Parent != 1 {
		t.Errorf("%+v", f)
	}
}
