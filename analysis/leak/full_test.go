package leak

import (
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// ramped is a window of 100 collections, one a second, whose heap of 100 MiB is full from the 20th on: a site fills it,
// another was there before, a third churns.
func ramped(kind uint64, used func(i int) float64) (*heap.Replay, *detector) {
	r := heap.NewReplay(&analysistest.Source{})
	r.JVM.MaxHeap = 100 << 20
	for i := range uint64(3) {
		r.Methods[i+1] = trace.Method{ID: i + 1, Class: "La/A;", Name: string(rune('a' + i))}
		r.Frames[i+1] = trace.Frame{ID: i + 1, Method: i + 1}
	}
	h := NewDetector()
	v := map[uint64][]float64{}
	for i := range 100 {
		h.Times, h.Live = append(h.Times, float64(i)), append(h.Live, used(i)*(1<<20))
		x := spaceUse{uint64(i + 1), trace.PauseYoung, uint64(used(i) * (1 << 20)), false}
		if i >= 20 {
			x.kind = kind
			if kind == trace.PauseFull {
				h.Floors = append(h.Floors, int32(i))
			}
		}
		h.spaces = append(h.spaces, x)
		v[1] = append(v[1], min(used(i)-20, 76)*(1<<20)) // what fills it
		v[2] = append(v[2], 15<<20)
		v[3] = append(v[3], float64(i%3)*(1<<20))
	}
	h.MovedN = []int32{99, 99}
	for k, v := range v {
		h.Sites[key(k)] = dense(v)
	}
	return r, h
}

// TestFull names what filled a heap that was full after a fifth of the window, and nothing where it only looks so: a
// plateau is no evidence against it.
func TestFull(t *testing.T) {
	ramp := func(i int) float64 { return min(20+float64(i)*3.8, 96) }
	r, h := ramped(trace.PauseFull, ramp)
	l := h.Report(&r.Cursor)
	if l.Full == nil || l.Full.GC != 21 || !l.Full.UntilEnd || len(l.Verdicts) == 0 {
		t.Fatalf("%+v", l)
	}
	v := l.Verdicts[0]
	if v.Kind != KindFills || v.Place.Method != "a" || v.HeapShare < 0.7 || v.HeapShare > 0.85 ||
		v.FullIn != nil || v.BytesPerSecond < 3<<20 || v.BytesPerSecond > 4.5*(1<<20) ||
		!strings.Contains(string(v.Sentence), "was full") {
		t.Errorf("%+v", v)
	}
	for _, v := range l.Verdicts[1:] {
		t.Errorf("more than one fills it: %s", v.Sentence)
	}
	if l.Leaks() != 1 {
		t.Errorf("%d leaks", l.Leaks())
	}
	r, h = ramped(trace.PauseYoung, ramp) // a young collection says nothing of what lives
	if l := h.Report(&r.Cursor); l.Full != nil || len(l.Verdicts) > 0 && l.Verdicts[0].Kind == KindFills {
		t.Errorf("full by young collections: %+v", l)
	}
	half := func(i int) float64 { return min(20+float64(i)*3.8, 80) }
	r, h = ramped(trace.PauseFull, half)
	if l := h.Report(&r.Cursor); l.Full != nil {
		t.Errorf("full at 80 %%: %+v", l.Full)
	}
	r, h = ramped(trace.PauseFull, half)
	r.Exhausted = []trace.Exhausted{{Time: 30e9, Failed: 1}}
	if l := h.Report(&r.Cursor); l.Full == nil || l.Full.GC > 32 || l.Full.Evidence != "an allocation failed" {
		t.Errorf("an allocation failed at 80 %%: %+v", l.Full)
	}
}

// TestSameFigures: what one recording says does not hang on the order of a map, in which floats would be added.
func TestSameFigures(t *testing.T) {
	ramp := func(i int) float64 { return min(20+float64(i)*3.8, 96) }
	said := map[[3]float64]int{}
	for range 32 {
		r, h := ramped(trace.PauseFull, ramp)
		for k := range uint64(40) {
			r.Frames[10+k] = trace.Frame{ID: 10 + k, Method: 1}
			v := make([]float64, len(h.Times))
			for i := range v {
				v[i] = ramp(i) * 1000 / float64(3+k)
			}
			h.Sites[key(10+k)] = dense(v)
		}
		v := h.Report(&r.Cursor).Verdicts[0]
		said[[3]float64{v.HeapShare, v.Share, v.BytesPerSecond}]++
	}
	if len(said) != 1 {
		t.Errorf("one recording gives %v", said)
	}
}

// TestFullBesideTable: a table that is loaded first and stays is larger than the leak that fills the rest, and in the
// same method, but does not fill the heap.
func TestFullBesideTable(t *testing.T) {
	r, h := ramped(trace.PauseFull, func(i int) float64 {
		if i < 5 {
			return 10 + float64(i)*10
		}
		return min(50+float64(i-4)*2.9, 96)
	})
	r.Methods[1] = trace.Method{ID: 1, Class: "La/Call;", Name: "<init>"}
	r.Methods[2] = trace.Method{ID: 2, Class: "La/Tariff;", Name: "<init>"}
	r.Methods[4] = trace.Method{ID: 4, Class: "La/A;", Name: "main"}
	for i := range uint64(2) {
		r.Frames[i+1] = trace.Frame{ID: i + 1, Method: i + 1, Parent: 4}
	}
	r.Frames[4] = trace.Frame{ID: 4, Method: 4}
	leak, table := make([]float64, 100), make([]float64, 100)
	for i := range leak {
		leak[i], table[i] = min(max(0, float64(i-4)*2.9), 46)*(1<<20), min(float64(i)*10, 40)*(1<<20)
	}
	h.Sites[key(1)], h.Sites[key(2)] = dense(leak), dense(table)
	l := h.Report(&r.Cursor)
	if len(l.Verdicts) != 1 || l.Verdicts[0].Kind != KindFills || len(l.Verdicts[0].Members) != 1 ||
		l.Verdicts[0].Place.Class != "a.Call" {
		t.Fatalf("%+v", l.Verdicts)
	}
	if x := l.Verdicts[0].HeapShare; x < 0.4 || x > 0.55 {
		t.Errorf("it has %v of the heap", x)
	}
}

// TestStructures: sites of one method that grow as fast are one verdict, the constructor's caller is its method, and a
// site that is slower by far is another.
func TestStructures(t *testing.T) {
	r := heap.NewReplay(&analysistest.Source{})
	line := func(n int) []trace.LineEntry { return []trace.LineEntry{{BCI: 0, Line: n}} }
	r.Methods[1] = trace.Method{ID: 1, Class: "La/Shop;", Name: "order", Lines: line(10)}
	r.Methods[2] = trace.Method{ID: 2, Class: "La/Order;", Name: "<init>", Lines: line(3)}
	r.Methods[3] = trace.Method{ID: 3, Class: "Ljava/util/HashMap;", Name: "newNode"}
	r.Methods[4] = trace.Method{ID: 4, Class: "La/Shop;", Name: "lambda$order$0", Lines: line(12)}
	r.Frames[1] = trace.Frame{ID: 1, Method: 1}
	r.Frames[2] = trace.Frame{ID: 2, Method: 2, Parent: 1}
	r.Frames[3] = trace.Frame{ID: 3, Method: 3, Parent: 1}
	r.Frames[4] = trace.Frame{ID: 4, Method: 4}
	h := NewDetector()
	for i := range 100 {
		h.Times = append(h.Times, float64(i))
	}
	h.floor(5)
	for frame, rate := range map[uint64]int{1: 2, 2: 2, 3: 2, 4: 20} {
		s := &history.Series{}
		for i := range 100 {
			s.Add(int32(i), int32(rate), float64(rate)*8192)
		}
		s.Taken, s.Objects = s.Born, s.Born*100
		h.Sites[sites.Key{Frame: frame, Class: sites.Class{Name: "a.C" + string(rune('0'+frame))}}] = s
	}
	got := h.Verdicts(&r.Cursor)
	if len(got) != 2 || len(got[1].Members) != 3 || got[1].Place.Class != "a.Order" && got[1].Place.Class != "a.Shop" ||
		got[0].Place.Line == nil || *got[0].Place.Line != 12 {
		t.Fatalf("%+v", got)
	}
	if sum := got[1].BytesPerSecond; sum < 5.9*8192 || sum > 6.1*8192 {
		t.Errorf("the members grow by %v in all", sum)
	}
}

// TestNoRoom: an allocation that failed while half of the heap was free is no full heap if the program goes on, and
// neither where no collection is known.
func TestNoRoom(t *testing.T) {
	r, h := world(births(1, 1, lives(5)), every([]float64{20}, nil))
	r.Exhausted = []trace.Exhausted{{Time: 30e9, Failed: 1}}
	if l := h.Report(&r.Cursor); l.Full == nil || !l.Full.Large || l.Full.GC != 30 {
		t.Errorf("%+v", l.Full)
	}
	h.Times[len(h.Times)-1] += 2 * copes
	if l := h.Report(&r.Cursor); l.Full != nil {
		t.Errorf("the program goes on: %+v", l.Full)
	}
	r, h = world(nil, nil)
	r.Exhausted = []trace.Exhausted{{Time: 30e9, Failed: 1}}
	if l := h.Report(&r.Cursor); l.Full != nil {
		t.Errorf("without a collection: %+v", l.Full)
	}
}
