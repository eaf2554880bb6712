package trace

import "testing"

// TestSweeps: G1 may have overwritten what a listing has once said, from a Remark to the Cleanup, and as long as it is
// not known whether there was one.
func TestSweeps(t *testing.T) {
	const young, remark, cleanup, full, listed, lost = PauseYoung, PauseRemark, PauseCleanup, PauseFull, 100, 101
	for _, c := range []struct {
		name         string
		does         []uint64
		serial, late bool
		swept, doubt bool
	}{
		{name: "no marking", does: []uint64{young, listed, young}},
		{name: "since a Remark", does: []uint64{young, listed, remark}, swept: true, doubt: true},
		{name: "a listing within", does: []uint64{remark, listed, young}, swept: true, doubt: true},
		{name: "a listing behind the Cleanup", does: []uint64{remark, cleanup, listed, young}},
		{name: "a Cleanup behind the listing", does: []uint64{remark, listed, cleanup}, swept: true, doubt: true},
		{name: "ended by a full collection", does: []uint64{remark, full, listed, young}},
		{name: "collections are missing", does: []uint64{young, listed, lost, young, listed, young}, doubt: true},
		{name: "missing, then a full one", does: []uint64{young, lost, full, listed, young}},
		{name: "missing, then a Cleanup", does: []uint64{young, lost, cleanup, listed, young}},
		{name: "attached", late: true, does: []uint64{young, listed, young}, doubt: true},
		{name: "attached to Serial", late: true, serial: true, does: []uint64{young, listed, young}},
	} {
		var s Sweeps
		j := JVM{Collector: CollectorG1, Flags: JVMAtStart}
		if c.late {
			j.Flags = 0
		}
		if c.serial {
			j.Collector = CollectorSerial
		}
		s.JVM(&j)
		gc := uint64(0)
		for _, x := range c.does {
			switch x {
			case listed:
				s.Listed()
			case lost:
				gc++
			default:
				gc++
				s.Pause(&Pause{GC: gc, Kind: x})
			}
		}
		if s.Swept != c.swept || s.Doubt() != c.doubt {
			t.Errorf("%s: swept %v, doubt %v", c.name, s.Swept, s.Doubt())
		}
	}
}
