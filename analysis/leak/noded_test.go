package leak

import (
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// TestMostDie: of a line most of whose objects die at once, the few that stay are a leak if nodes of a map came as fast
// as they did. Nodes that came much faster hold something else.
func TestMostDie(t *testing.T) {
	const each = 500 // objects of a sample
	for name, c := range map[string]struct {
		linked, hashed float64 // nodes a second
		want           bool
	}{
		"no nodes":                      {0, 0, false},
		"linked nodes, as many":         {8 * each, 0, true},
		"nodes of a map, as many":       {0, 8 * each, true},
		"nodes of what dies, too":       {72 * each, 0, false},
		"nodes of another map, by far":  {0, 72 * each, false},
		"few nodes, of something small": {each, each, false},
	} {
		r, h := world(append(births(1, 8, forever), births(1, 64, lives(0.01))...), every(nil, nil))
		for i := range h.Times {
			h.nodes = append(h.nodes, uint64(c.linked*float64(i+1)))
			h.tables.nodes = append(h.tables.nodes, [families]uint64{hashMaps: uint64(c.hashed * float64(i+1))})
		}
		h.tables.now[hashMaps] = map[uint64]uint64{1 << 20: 4}
		l := h.Report(&r.Cursor)
		if named := len(l.Verdicts) == 1 && l.Verdicts[0].Kind == KindSuspect; named != c.want {
			t.Errorf("%s: %+v, %+v", name, l.Verdicts, l.Misses)
		}
	}
}

// totals are those of a state, by type.
type totals struct {
	heap.Totals
	by []heap.Count
}

func (x totals) PerType() []heap.Count { return x.by }

// TestHeldByTheJVM: finalizers that wait and threads that run hold objects as nodes of a linked list do.
func TestHeldByTheJVM(t *testing.T) {
	r := heap.NewReplay(&analysistest.Source{})
	for i, name := range []string{"shop/Order", "java/lang/ref/Finalizer", "java/lang/Thread"} {
		r.Types[uint64(i)] = trace.Type{ID: uint64(i), Name: name}
	}
	r.Totals = totals{by: []heap.Count{{Objects: 70000}, {Objects: 300}, {Objects: 20}}}
	h := NewDetector()
	h.nodes = make([]uint64, 1)
	h.tables.begin(0, true)
	h.containers(&r.Cursor, 0)
	if h.nodes[0] != 320 {
		t.Errorf("%d nodes", h.nodes[0])
	}
}
