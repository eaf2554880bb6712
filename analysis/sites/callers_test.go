package sites

import (
	"slices"
	"testing"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/heap/samples"
	"github.com/heapcam/heapcam/trace"
)

// TestCallers: of objects whose innermost frame alone is known each stack gets its share of the samples, the
// same ones each time.
func TestCallers(t *testing.T) {
	s := &heap.Symbols{Frames: map[uint64]trace.Frame{}, Types: map[uint64]trace.Type{}}
	s.Frames[1] = trace.Frame{ID: 1, Method: 7, BCI: 3} // as the bytecode tells it
	s.Frames[2] = trace.Frame{ID: 2, Method: 8, BCI: 1}
	s.Frames[3] = trace.Frame{ID: 3, Method: 9, BCI: 1}
	s.Frames[4] = trace.Frame{ID: 4, Parent: 2, Method: 7, BCI: 3}
	s.Frames[5] = trace.Frame{ID: 5, Parent: 3, Method: 7, BCI: 3}
	s.Frames[6] = trace.Frame{ID: 6, Method: 10}
	var c Callers
	for i := range 100 {
		frame := uint64(4)
		if i%4 == 0 {
			frame = 5
		}
		c.Add(s, frame)
	}
	const first, n = trace.MaxSampleID + 1, 10000
	got := map[uint64]int{}
	for id := uint64(first); id < first+n; id++ {
		frame := c.Draw(s, 1, id)
		if frame != c.Draw(s, 1, id) {
			t.Fatal("another stack the second time")
		}
		got[frame]++
	}
	if got[4]+got[5] != n || got[5] < n/5 || got[5] > n*3/10 {
		t.Errorf("%v, want a quarter of stack 5", got)
	}
	if f := c.Draw(s, 6, first); f != 6 {
		t.Errorf("a frame without samples becomes %d", f)
	}
	if f := c.Draw(s, 4, first); f != 4 {
		t.Errorf("a whole stack becomes %d", f)
	}
	if f, share, n := c.Likeliest(s, 1); f != 4 || share != 0.75 || n != 100 {
		t.Errorf("the likeliest is %d, with %g of %d samples", f, share, n)
	}
	for _, frame := range []uint64{4, 6} {
		if f, _, n := c.Likeliest(s, frame); f != frame || n != 0 {
			t.Errorf("of frame %d the likeliest is %d, of %d samples", frame, f, n)
		}
	}
	live := func(id uint64) *heap.Sample {
		return &heap.Sample{Sample: trace.Sample{ID: id, Type: 1, Size: 16, Frame: 1}, Weight: 1}
	}
	state := State{Symbols: s, Samples: []*heap.Sample{live(first), live(first + 1), live(12)}, Callers: &c,
		Types: []heap.Count{{}, {Objects: 3, Bytes: 48}}}
	drawn, told := uint64(0), uint64(0)
	for _, r := range state.Rows() {
		drawn += r.Drawn
		if r.Drawn > 0 && (r.ObjectsLow > r.Objects-r.Drawn || r.ObjectsHigh < 2 || r.BytesHigh < 32) {
			t.Errorf("the bounds leave no other callers: %+v", r)
		}
		if r.Drawn < r.Samples {
			told += r.Samples - r.Drawn
		}
	}
	if !samples.Sited(first) || drawn != 2 || told != 1 {
		t.Errorf("callers of %d objects were drawn, of %d not", drawn, told)
	}
}

// TestCallersAmong: samples that live say who called, by how many objects they stand for; all others only where none
// of these ends in the frame.
func TestCallersAmong(t *testing.T) {
	s := &heap.Symbols{Frames: map[uint64]trace.Frame{}}
	for method := range uint64(2) { // each is called from two places
		s.Frames[10*method+1] = trace.Frame{Method: method}
		s.Frames[10*method+2] = trace.Frame{Method: method, Parent: 100}
		s.Frames[10*method+3] = trace.Frame{Method: method, Parent: 101}
	}
	c := Callers{sited: true}
	for range 50 {
		c.Add(s, 2)
		c.Add(s, 12)
	}
	const sited = trace.MaxSampleID + 1
	live := []*heap.Sample{{Sample: trace.Sample{ID: 1, Frame: 3}, Weight: 300},
		{Sample: trace.Sample{ID: 2, Frame: 2}, Weight: 100}, {Sample: trace.Sample{ID: sited, Frame: 1}, Weight: 1}}
	among := c.Frozen().Among(s, slices.Values(live))
	got := map[uint64]int{}
	for id := uint64(sited); id < sited+4000; id++ {
		got[among.Of(s, 1, id)]++
		got[among.Of(s, 11, id)]++
	}
	if got[2]+got[3] != 4000 || got[3] < 2800 || got[3] > 3200 || got[12] != 4000 {
		t.Errorf("%v, want three quarters of stack 3, and all of 12, of which no sample lives", got)
	}
	if f, share, n := among.Likeliest(s, 1); n != 2 || share != 0.5 {
		t.Errorf("the likeliest is %d, with %g of %d samples", f, share, n)
	}
	if among.Of(s, 1, 5) != 1 {
		t.Error("a sample has other callers than its own")
	}
	var none *Callers
	if none.Among(s, slices.Values(live)) != nil || none.Of(s, 1, sited) != 1 || new(Callers).Frozen() != nil {
		t.Error("callers are drawn, and none is needed")
	}
}
