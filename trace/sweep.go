package trace

// Sweeps follows whether G1 may have put fillers over dead objects, or freed their regions, since the newest listing.
// Its markings do so from a Remark to the next Cleanup, and nothing reports it. Nor does anything report a later
// collection that fails to evacuate an old region from which one before has failed: objects that died meanwhile are
// filled over. Collections and listings come in the order of the stream. The zero value has seen nothing.
type Sweeps struct {
	Swept bool // since the newest listing, as far as was seen

	g1, atStart bool
	gc          uint64
	sweeping    bool // a Remark, and no Cleanup yet
	failing     bool // the newest collection has failed to evacuate some region
	sure        bool // sweeping is known: no collection is missing in which it could have changed
	rolled      bool // nothing was swept since the first slice of the listing under way
}

// JVM takes in what the recording is a recording of.
func (s *Sweeps) JVM(j *JVM) { s.g1, s.atStart = j.Collector == CollectorG1, j.Flags&JVMAtStart != 0 }

// Pause takes in a collection.
func (s *Sweeps) Pause(p *Pause) {
	if s.gc == 0 {
		s.sure = s.atStart && p.GC == 1
	} else if p.GC != s.gc+1 {
		s.sure, s.rolled = false, false
		s.Swept = s.Swept || s.g1 // for all that is known
	}
	s.gc = p.GC
	if s.failing = s.g1 && p.Flags&PauseEvacFailed != 0; s.failing {
		s.Swept, s.rolled = true, false
	}
	switch p.Kind {
	case PauseRemark:
		s.Swept, s.sweeping, s.sure, s.rolled = true, true, true, false
	case PauseCleanup:
		s.Swept, s.sweeping, s.sure, s.rolled = true, false, true, false
	case PauseFull: // it ends a marking
		s.sweeping, s.sure = false, true
	}
}

// Listed takes in that the newest collection has a listing.
func (s *Sweeps) Listed() {
	if !s.sweeping && !s.failing {
		s.Swept = false
	}
}

// Slice takes in that the newest collection has a part of a listing. What was listed before a marking ended is swept as
// if it had not been listed.
func (s *Sweeps) Slice(first, last bool) {
	if first {
		s.rolled = s.sure && !s.sweeping
	}
	if last && s.rolled {
		s.Swept = false
	}
}

// Doubt says that the next listing may have fillers in the place of objects that are known, even if it has as many
// objects and bytes.
func (s *Sweeps) Doubt() bool { return s.g1 && (s.Swept || !s.sure) }
