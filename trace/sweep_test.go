package trace

import "testing"

// TestSweepsSlices: what a listing in slices has listed before a marking ended may have fillers over it afterwards, and
// a gap may hide a marking.
func TestSweepsSlices(t *testing.T) {
	const young, remark, cleanup = PauseYoung, PauseRemark, PauseCleanup
	for name, c := range map[string]struct {
		kinds       []uint64 // 0: a lost collection
		first, last int      // which of them have the first slice and the last
		swept       bool
	}{
		"marked before the first":           {[]uint64{remark, cleanup, young, young}, 2, 3, false},
		"the first at the cleanup":          {[]uint64{remark, cleanup, young}, 1, 2, false},
		"a marking in between":              {[]uint64{young, remark, cleanup, young}, 0, 3, true},
		"the first in a marking":            {[]uint64{remark, young, cleanup, young}, 1, 3, true},
		"a loss in between":                 {[]uint64{young, young, 0, young}, 1, 3, true},
		"one marking, and listed after it":  {[]uint64{remark, cleanup, young, remark, cleanup, young}, 2, 2, true},
		"nothing but young collections":     {[]uint64{young, young, young}, 0, 2, false},
		"the last comes with the next mark": {[]uint64{young, young, remark}, 0, 2, true},
	} {
		s := Sweeps{}
		s.JVM(&JVM{Collector: CollectorG1, Flags: JVMAtStart})
		for i, k := range c.kinds {
			if k == 0 {
				continue
			}
			s.Pause(&Pause{GC: uint64(i + 1), Kind: k})
			s.Slice(i == c.first, i == c.last)
		}
		if s.Swept != c.swept {
			t.Errorf("%s: swept %v", name, s.Swept)
		}
	}
}

// TestSweepsFailed: a collection that could not evacuate a region may be followed by one that fills over what has died
// in it and says nothing. The listing right behind the failure does not end that, the next one does.
func TestSweepsFailed(t *testing.T) {
	s := Sweeps{}
	s.JVM(&JVM{Collector: CollectorG1, Flags: JVMAtStart})
	for i, want := range []bool{false, true, true, true, false, false} {
		p := Pause{GC: uint64(i + 1), Kind: PauseYoung}
		if i == 1 {
			p.Flags = PauseEvacFailed
		}
		if s.Pause(&p); i == 1 || i == 4 {
			s.Listed()
		}
		if s.Swept != want {
			t.Errorf("collection %d: swept %v", p.GC, s.Swept)
		}
	}
}
