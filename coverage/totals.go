package coverage

// Totals gives what lives by type, for as long as f is not done; false if the state is not known.
func (l *Live) Totals(f func(typ uint32, n Count)) bool {
	if !l.known {
		return false
	}
	l.total.each(f)
	return true
}

func (t *Totals) each(f func(typ uint32, n Count)) {
	for i, n := range t.dense {
		if n.Objects > 0 {
			f(uint32(i), n)
		}
	}
	for i, n := range t.far {
		f(i, n)
	}
}

// TypeOf gives the type of the object that a live sample stands on.
func (l *Live) TypeOf(id uint64) (uint32, bool) {
	s, ok := l.live[id]
	return s.typ, ok
}
