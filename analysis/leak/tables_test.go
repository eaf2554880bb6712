package leak

import "testing"

// TestRoom holds nodes of hash tables against the tables: more than there is room for are dead, and a site whose
// objects came as fast as they did may be theirs.
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
		"a leak":               {50000, grown(65536), 48000, false},
		"a cache that is full": {50000, grown(32768), 48000, true},
		"a cache half of whose last table it fills": {60000, grown(65536), 58000, true},
		"small ones of two lengths":                 {300000, map[uint64]uint64{16: 10000, 32: 10000}, 290000, false},
		"another site":                              {50000, grown(32768), 12000, false},
		"a small one for each object":               {50000, map[uint64]uint64{16: 50000}, 48000, false},
		"few":                                       {900, grown(256), 900, false},
	} {
		h := NewDetector()
		h.Times = []float64{0, 20, 40, 60}
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
		if yes, open := h.replaced(c.objects, 60, 100); yes || open != (name != "another site" && name != "few") {
			t.Errorf("%s, counted only: %v %v", name, yes, open)
		}
	}
}

// TestRebuilt tells a table of a length that others had before from those that are built anew again and again.
func TestRebuilt(t *testing.T) {
	h := NewDetector()
	for i := range 61 {
		h.Times = append(h.Times, float64(i))
	}
	for name, c := range map[string]struct {
		at []int32
		ok bool
	}{
		"one more":                      {[]int32{2, 40}, true},
		"several alike":                 {[]int32{2, 38, 47, 51}, true},
		"built anew":                    {[]int32{2, 10, 18, 26, 34, 42, 50, 58}, false},
		"every third of the window":     {[]int32{2, 22, 42}, false},
		"only early":                    {[]int32{2, 5}, false},
		"never":                         {nil, false},
		"first seen late":               {[]int32{20}, true},
		"several seen late":             {[]int32{41, 47, 51}, true},
		"a batch every fifteen seconds": {[]int32{15, 30, 45}, false},
	} {
		a := &lengths{seen: map[uint64]int32{64: append(c.at, 0)[0]},
			rose: map[uint64]rises{64: {most: uint64(len(c.at)), at: c.at}}}
		at, ok := h.once(a, 64, 7.5)
		want := append(c.at, 0)[max(0, len(c.at)-1)]
		if a.seen[64] > 7 {
			want = a.seen[64]
		}
		if ok != c.ok || ok && at != want {
			t.Errorf("%s: %v %v", name, at, ok)
		}
	}
}
