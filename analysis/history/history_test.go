package history

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestHeapHistory adds the histories of all classes up after each collection: they are the state. What was born and has
// not died is what lives.
func TestHeapHistory(t *testing.T) {
	m := tracetest.New(tracetest.All(9, trace.CollectorSerial, trace.DepthSurvivors))
	var bs []trace.Block
	for i := range 40 {
		bs = append(bs, m.Step(i == 0).Blocks...)
	}
	want := map[int]heap.Count{}
	exact, i := true, 0
	var first *heap.Collection
	if err := collection.Each(heap.NewReplay(&analysistest.Source{B: bs}), func(c *heap.Collection) bool {
		if c.Known {
			want[i] = heap.Count{Objects: c.Objects, Bytes: c.Bytes}
			if first == nil {
				first = c
			}
		}
		exact = exact && (c.Flags&trace.PauseExact != 0 || i == 0)
		i++
		return true
	}); err != nil {
		t.Fatal(err)
	}
	for _, k := range []int{1, 2, 5} {
		h, err := Make(heap.NewReplay(&analysistest.Source{B: bs}), k)
		if err != nil || len(h.Collections) != i || len(h.Classes) == 0 {
			t.Fatal(err, len(h.Classes))
		}
		sums := make([]heap.Count, i)
		old, live := uint64(0), uint64(0)
		for _, x := range h.Classes {
			var now heap.Count
			for c, at := 0, 0; c < i; c++ {
				for ; at < len(x.At) && int(x.At[at]) == c; at++ {
					now = heap.Count{Objects: x.Objects[at], Bytes: x.Bytes[at]}
				}
				sums[c].Objects += now.Objects
				sums[c].Bytes += now.Bytes
			}
			old += x.Old
			live += now.Objects
			if x.Old > now.Objects || x.MeanAge < 0 {
				t.Errorf("%+v", x)
			}
		}
		for c, n := range want {
			if sums[c] != n {
				t.Errorf("collection %d: %+v, want %+v", c, sums[c], n)
			}
		}
		// Collections without a census have births or deaths, too: what was born and has not died is what lives.
		balance := -int64(first.Objects) + int64(first.Born.Objects) - int64(first.Died.Objects)
		for _, x := range h.Classes {
			balance += int64(x.Objects[len(x.Objects)-1]) + int64(x.Died) - int64(x.Born)
		}
		if exact || h.Uncounted == 0 || balance != 0 {
			t.Errorf("%d collections are not counted, %d objects too many live", h.Uncounted, balance)
		}
		if k == 1 && old > live || old == 0 && k == 1 {
			t.Errorf("%d of %d survived one", old, live)
		}
		for _, x := range h.Sites {
			if x.Died > x.Born || len(x.At) != len(x.Bytes) {
				t.Errorf("%+v", x)
			}
		}
		var b bytes.Buffer
		h.WriteText(&b, 5)
		if !strings.Contains(b.String(), "at least so many") {
			t.Errorf("%s", &b)
		}
		packed, err := h.Pack()
		if err != nil {
			t.Fatal(err)
		}
		var again HeapHistory
		if err := again.Unpack(packed); err != nil {
			t.Fatal(err)
		}
		if a, b := asJSON(t, h), asJSON(t, &again); !bytes.Equal(a, b) || len(h.Sites) == 0 || len(packed) > len(a) {
			t.Errorf("%d sites, %d bytes packed of %d:\n%s\n%s", len(h.Sites), len(packed), len(a), a, b)
		}
		if err := again.Unpack(packed[:len(packed)-1]); err == nil {
			t.Error("half of it was taken")
		}
	}
	var none HeapHistory
	if packed, err := (&HeapHistory{Collections: []uint64{}, Seconds: []float64{}, Classes: []History{},
		Sites: []History{}}).Pack(); err != nil || none.Unpack(packed) != nil ||
		bytes.Contains(asJSON(t, &none), []byte("null")) {
		t.Error("empty histories", err)
	}
	t.Logf("exact throughout: %v", exact)
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
