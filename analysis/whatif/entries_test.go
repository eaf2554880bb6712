package whatif

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/lifetimes"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// TestEntries: entries that stand for several objects have all words and objects, large objects stay alone, and the
// prediction is nearly that of all objects.
func TestEntries(t *testing.T) {
	defer func(n int, x float64) { mostObserved, made = n, x }(mostObserved, made)
	made = 1 << 14
	src := &analysistest.Source{B: analysistest.Program(0, trace.CollectorParallel, 24)}
	tape, err := lifetimes.Read(heap.NewReplay(src))
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(tape)
	if err != nil {
		t.Fatal(err)
	}
	var all Prediction
	for _, most := range []int{1 << 21, tape.Len() / 5} {
		mostObserved = most
		words, objects, n := uint64(0), 0, 0
		entries(tape, rand.New(rand.NewPCG(1, 2)), func(object int, w, count uint32) {
			words, objects, n = words+uint64(w), objects+int(count), n+1
			if tape.Words[object] >= ownEntry && (count != 1 || w != tape.Words[object]) {
				t.Errorf("an object of %d words is an entry of %d objects and %d words", tape.Words[object], count, w)
			}
		})
		want := uint64(0)
		for _, w := range tape.Words {
			want += uint64(w)
		}
		if words != want || objects != tape.Len() {
			t.Errorf("%d words of %d, %d objects of %d", words, want, objects, tape.Len())
		}
		if few := n < tape.Len()/4; few != (most < tape.Len()) {
			t.Errorf("%d entries for %d objects, at most about %d", n, tape.Len(), most)
		}
		ps, err := m.Predict(context.Background(), How{}, []Config{m.Recorded}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if most > tape.Len() {
			all = ps[0]
			continue
		}
		for _, x := range [][2]Span{{all.Minor, ps[0].Minor}, {all.GCSeconds, ps[0].GCSeconds},
			{all.Promoted, ps[0].Promoted}, {all.Copied, ps[0].Copied}} {
			if d := math.Abs(x[1].Value - x[0].Value); d > 0.05*x[0].Value+1 {
				t.Errorf("all objects: %+v, few entries: %+v", x[0], x[1])
			}
		}
	}
}
