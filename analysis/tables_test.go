package analysis

import "testing"

// TestRoom holds nodes of hash tables against the tables: more than there is room for are dead, and a site whose objects came as fast as they did
// may be theirs.
func TestRoom(t *testing.T) {
	grown := func(last uint64) map[uint64]uint64 { // what one table leaves behind that grew to length last
		now := map[uint64]uint64{}
		for m := uint64(16); m <= last; m *= 2 {
			now[m] = 1
		}
		return now
	}
	for name, c := range map[string]struct {
		nodes   uint64 // at the end
		now     map[uint64]uint64
		objects float64 // of the site
		yes     bool
	}{
		"a leak":                      {50000, grown(65536), 48000, false},
		"a cache that is full":        {50000, grown(32768), 48000, true},
		"another site":                {50000, grown(32768), 12000, false},
		"a small one for each object": {50000, map[uint64]uint64{16: 50000}, 48000, false},
		"few":                         {900, grown(256), 900, false},
	} {
		h := newHistories(survived)
		h.times = []float64{0, 20, 40, 60}
		for i := range uint64(4) {
			h.tables.nodes = append(h.tables.nodes, [families]uint64{concurrentMaps: c.nodes * i / 3})
		}
		h.tables.now[concurrentMaps] = c.now
		if yes, open := h.replaced(c.objects, 60, 100); yes != c.yes || open {
			t.Errorf("%s: %v %v", name, yes, open)
		}
		if h.like(softReferences, c.objects, 60, 100) {
			t.Errorf("%s: soft references", name)
		}
		h.tables.nodes[3][softReferences] = uint64(c.objects * 0.9)
		if h.like(softReferences, c.objects, 60, 100) != (name != "few") {
			t.Errorf("%s: no soft references", name)
		}
		h.counts = true
		if yes, open := h.replaced(c.objects, 60, 100); yes || open != (c.yes || name == "a leak" || name == "a small one for each object") {
			t.Errorf("%s, counted only: %v %v", name, yes, open)
		}
	}
}

// TestRebuilt tells a table of a length that others had before from those that are built anew again and again.
func TestRebuilt(t *testing.T) {
	times := make([]float64, 61)
	for i := range times {
		times[i] = float64(i)
	}
	for name, c := range map[string]struct {
		at []int32
		ok bool
	}{
		"one more": {[]int32{2, 40}, true}, "several alike": {[]int32{2, 38, 40, 41}, true}, "built anew": {[]int32{2, 10, 18, 26, 34, 42, 50, 58}, false},
		"every third of the window": {[]int32{2, 22, 42}, false}, "only early": {[]int32{2, 5}, false}, "never": {nil, false},
	} {
		a := &lengths{rose: map[uint64]rises{64: {most: uint64(len(c.at)), at: c.at}}}
		at, ok := a.once(64, times, 7.5)
		if ok != c.ok || ok && at != c.at[len(c.at)-1] {
			t.Errorf("%s: %v %v", name, at, ok)
		}
	}
}
