package samples

import "github.com/heapcam/heapcam/trace"

// firstSited is the lowest id of samples that nobody drew: objects whose site the bytecode has told (trace.SitedAddr).
// They stand for themselves alone.
const firstSited = trace.MaxSampleID + 1

// Sited says whether the id is one that AddSited gave.
func Sited(id uint64) bool { return id >= firstSited }

// AddSited makes a live sample of an object whose site the bytecode has told, and gives its id. frame is one of this
// tracker's (Take, site).
func (t *Tracker) AddSited(typ, bytes, frame, birth, time uint64) uint64 {
	id := firstSited + t.sited
	t.sited++
	s := &Sample{Sample: trace.Sample{ID: id, Time: time, Type: typ, Size: bytes, Frame: frame}, Birth: birth,
		Weight: 1}
	t.Live.Put(id, s)
	t.LiveBytes += bytes
	t.Resolved = append(t.Resolved, s)
	return id
}

// Tell says that the bytecode has told the site of the object of a live sample that was drawn.
func (t *Tracker) Tell(id uint64) {
	if s := t.Live.Get(id); s != nil && !s.Told {
		t.own(s).Told = true
	}
}

// Untell says that nobody knows any more what the bytecode has told of others.
func (t *Tracker) Untell() {
	for _, s := range t.Live.drawnOnes() {
		if s.Told {
			t.own(s).Told = false
		}
	}
}

// own gives a live sample that nobody else has: s or, if others may have seen it, a copy in its place.
func (t *Tracker) own(s *Sample) *Sample {
	if s.turn == t.turn && t.turn > 0 {
		return s
	}
	x := *s
	x.turn = t.turn
	t.Live.Put(s.ID, &x)
	t.Retold = append(t.Retold, &x)
	return &x
}

// HasSited says whether AddSited was ever called.
func (t *Tracker) HasSited() bool { return t.sited > 0 }

// KeepSited takes those samples of AddSited out of Live that each does not name.
func (t *Tracker) KeepSited(each func(there func(id uint64))) {
	n := int(t.sited/64) + 1 // a bit each: there are many
	if cap(t.there) < n {
		t.there = make([]uint64, n+n/2)
	}
	there := t.there[:n]
	clear(there)
	each(func(id uint64) {
		if k := id - firstSited; Sited(id) && k < t.sited {
			there[k/64] |= 1 << (k % 64)
		}
	})
	t.Live.keep(there, t.die)
}
