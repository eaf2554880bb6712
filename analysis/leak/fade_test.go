package leak

import (
	"math"
	"slices"
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// TestEntriesFade: a map of bounded keys gets fewer new entries in each quarter of the window, and has no verdict. One
// that grows evenly has, also where the whole program slows down.
func TestEntriesFade(t *testing.T) {
	const per, each = 8, 500 // samples a second, and objects a sample
	for name, c := range map[string]struct {
		fades, slower bool
		reason        string
	}{
		"even":                   {},
		"bounded keys":           {fades: true, reason: "fills"},
		"the program slows down": {fades: true, slower: true},
	} {
		thin := func(all []object) []object {
			return slices.DeleteFunc(all, func(o object) bool {
				return math.Mod(o.born*1000*math.Phi, 1) > math.Exp2(-o.born/40)
			})
		}
		objects, rest := births(1, per, forever), births(2, 16, lives(0.3))
		if c.fades {
			objects = thin(objects)
		}
		if c.slower {
			rest = thin(rest)
		}
		r, h := world(append(objects, rest...), every([]float64{50}, nil))
		for _, at := range h.Times {
			entries := per * each * at
			if c.fades {
				entries = per * each * 40 / math.Ln2 * (1 - math.Exp2(-at/40))
			}
			h.nodes = append(h.nodes, 0)
			h.tables.nodes = append(h.tables.nodes, [families]uint64{hashMaps: uint64(entries)})
		}
		h.tables.now[hashMaps] = map[uint64]uint64{1 << 20: 1}
		l := h.Report(&r.Cursor)
		reason := ""
		if len(l.Misses) > 0 {
			reason = l.Misses[0].Reason
		}
		if named := len(l.Verdicts) == 1; named != (c.reason == "") || reason != c.reason {
			t.Errorf("%s: %d verdicts, reason %q, want %q", name, len(l.Verdicts), reason, c.reason)
		}
	}
}

// TestSwept: entries are compared after a full collection, if one comes in time after which the state is known.
func TestSwept(t *testing.T) {
	h := NewDetector()
	for i := range 10 {
		h.Times, h.Live = append(h.Times, float64(i+1)), append(h.Live, 1)
		h.spaces = append(h.spaces, spaceUse{kind: trace.PauseYoung})
	}
	if got := h.swept(3); got != 3 {
		t.Errorf("without a full collection: %d", got)
	}
	h.spaces[9].kind, h.spaces[5].kind, h.spaces[6].kind = trace.PauseFull, trace.PauseFull, trace.PauseFull
	if h.Live[5] = -1; h.swept(3) != 6 || h.swept(7) != 7 {
		t.Errorf("the first known one in time: %d; too late: %d", h.swept(3), h.swept(7))
	}
}
