package lifetimes

// dropFillers removes the fillers from the tape: the collector made them, not the program. They are on it while the
// recording is read, because listings have them. No sample is one.
func (t *Tape) dropFillers(filler func(typ uint32) bool) {
	to := make([]int, len(t.Words)) // where each object goes
	n := 0
	for i, typ := range t.Type {
		if filler(typ) {
			to[i] = -1
			continue
		}
		t.keep(n, i)
		to[i] = n
		n++
	}
	t.Words, t.Type, t.BornLo, t.Born = t.Words[:n], t.Type[:n], t.BornLo[:n], t.Born[:n]
	t.Seen, t.Dead, t.Age, t.Unknown = t.Seen[:n], t.Dead[:n], t.Age[:n], t.Unknown[:n]
	for i := range t.Samples {
		if s := &t.Samples[i]; s.Object >= 0 {
			s.Object = to[s.Object]
		}
	}
}

// keep copies object i to place n, which is not after it.
func (t *Tape) keep(n, i int) {
	t.Words[n], t.Type[n], t.BornLo[n], t.Born[n] = t.Words[i], t.Type[i], t.BornLo[i], t.Born[i]
	t.Seen[n], t.Dead[n], t.Age[n], t.Unknown[n] = t.Seen[i], t.Dead[i], t.Age[i], t.Unknown[i]
}
