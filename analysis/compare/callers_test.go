package compare

import (
	"math"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// TestDraw: objects of a site of one frame are divided among the stacks of samples that end there, and the slopes of
// these allow any other division.
func TestDraw(t *testing.T) {
	s := heap.NewReplay(&analysistest.Source{}).Symbols
	const exact, leaks, rests, other = 1, 2, 4, 6
	for _, f := range []trace.Frame{{ID: exact, Method: 1, BCI: 9}, {ID: leaks, Method: 1, BCI: 9, Parent: 3},
		{ID: rests, Method: 1, BCI: 9, Parent: 5}, {ID: other, Method: 2}, {ID: 3, Method: 3}, {ID: 5, Method: 4}} {
		s.Frames[f.ID] = f
	}
	key := func(frame uint64) sites.Key { return sites.Key{Frame: frame, Class: sites.Class{Name: "A"}} }
	h, c := history.NewTracker(history.Survived), &Growth{}
	for _, frame := range []uint64{exact, leaks, rests, other} {
		h.Sites[key(frame)] = &history.Series{}
	}
	const n = 40
	for i := range n {
		h.Times = append(h.Times, float64(i))
		h.Sites[key(leaks)].Add(int32(i), 1, 100)
		h.Sites[key(exact)].Add(int32(i), 1, 1000)
		h.Sites[key(other)].Add(int32(i), 1, 7)
	}
	h.Sites[key(rests)].Add(0, 10, 1000)
	c.times, c.alloc = h.Times, h.Times
	got := c.draw(s, h)
	if len(got) != 2 || h.Sites[key(exact)] != nil || h.Sites[key(other)] == nil {
		t.Fatalf("%v of %v", got, h.Sites)
	}
	a, b := got[key(leaks)], got[key(rests)]
	for i := range n {
		whole := 1000 * float64(i+1)
		share := float64(i+1) * 100 / (float64(i+1)*100 + 1000)
		if math.Abs(a.bytes[i]+b.bytes[i]-whole) > 1e-6 || a.most[i] != whole ||
			math.Abs(a.bytes[i]-share*whole) > 1e-6 {
			t.Fatalf("after %d: %g and %g of %g, share %g", i, a.bytes[i], b.bytes[i], whole, share)
		}
	}
	if got, want := a.share(), 4000.0/5000; math.Abs(got-want) > 1e-9 || (*drawn)(nil).share() != 0 {
		t.Errorf("at the end a share of %g, want %g", got, want)
	}
	c.chains, c.drawn = map[string]*history.Series{"x": h.Sites[key(leaks)]}, map[string]*drawn{"x": a}
	x, _ := c.slopes("x")
	if x.Low > 100.1 || x.Low < 99 || x.High < 1099 || x.Value < 500 || x.Value > 1100 {
		t.Errorf("the slope is %+v", x)
	}
}
