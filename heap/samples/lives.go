package samples

import "sync"

// NoBirth is the birth in a Life of a sample whose birth does not fit: births in a state are below it.
const NoBirth = 1 << 31

// Lives is the history of a recording's samples: after which collections each of them lived. Readers may ask while one
// Follow extends it.
type Lives struct {
	Mu  sync.RWMutex // of all below
	All []Life

	slot []int32 // 1 + place in All by id, open addressing; of two with one id the later
	// live are the samples that live after the newest collection, placed those of them that are marked by Place.
	live, placed int
}

// Life is when a sample was alive: from a collection on, until another (0: to the end).
type Life struct {
	Sample   *Sample
	From, To uint64
	Birth    uint32 // that of the sample when it was resolved, at most NoBirth
	Placed   bool   // its object was found where it should be

	before int32 // 1 + place in All of the life of the same id before this one; 0: there is none
}

// At says whether the sample was alive after collection gc.
func (x *Life) At(gc uint64) bool { return x.From <= gc && (x.To == 0 || x.To > gc) }

// Follow takes in what collection gc, the newest one, has changed.
func (l *Lives) Follow(t *Tracker, gc uint64) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	for _, s := range t.Resolved {
		l.add(Life{Sample: s, From: gc, Birth: uint32(min(s.Birth, NoBirth))})
	}
	for _, s := range t.Died {
		if x := l.Find(s.ID); x != nil {
			l.end(x, gc)
		}
	}
	for _, s := range t.Retold { // from now on it counts as another one
		x := l.Find(s.ID)
		switch {
		case x == nil || x.To != 0:
		case x.From == gc:
			x.Sample = s
		default:
			y := Life{Sample: s, From: gc, Birth: x.Birth, Placed: x.Placed}
			l.end(x, gc)
			l.add(y)
		}
	}
}

// add appends the newest life of a sample.
func (l *Lives) add(x Life) {
	if 2*len(l.All) >= len(l.slot) {
		l.slot = make([]int32, max(1024, 2*len(l.slot)))
		for i := range l.All {
			*l.find(l.All[i].Sample.ID) = int32(i + 1)
		}
	}
	at := l.find(x.Sample.ID)
	x.before = *at
	l.All = append(l.All, x)
	l.live++
	if x.Placed {
		l.placed++
	}
	*at = int32(len(l.All))
}

func (l *Lives) end(x *Life, gc uint64) {
	if x.To != 0 {
		return
	}
	x.To = gc
	l.live--
	if x.Placed {
		l.placed--
	}
}

// find gives the slot of an id, or the empty one that it takes.
func (l *Lives) find(id uint64) *int32 {
	mask := uint64(len(l.slot) - 1)
	for h := id * 0x9e3779b97f4a7c15 >> 20 & mask; ; h = (h + 1) & mask {
		if i := l.slot[h]; i == 0 || l.All[i-1].Sample.ID == id {
			return &l.slot[h]
		}
	}
}

// Find gives the life of a sample, nil if it is not known. The caller holds Mu.
func (l *Lives) Find(id uint64) *Life {
	if i := l.Index(id); i >= 0 {
		return &l.All[i]
	}
	return nil
}

// Index gives the place of a sample in All, -1 if it is not known. The caller holds Mu.
func (l *Lives) Index(id uint64) int {
	if len(l.slot) == 0 {
		return -1
	}
	return int(*l.find(id)) - 1
}

// Place marks the i-th life: its object is where it should be. The caller holds Mu for writing.
func (l *Lives) Place(i int) {
	l.All[i].Placed = true
	l.placed++
}

// Unplace takes the mark back, if it is there. The caller holds Mu for writing.
func (l *Lives) Unplace(i int) {
	if x := &l.All[i]; x.Placed {
		if x.Placed = false; x.To == 0 {
			l.placed--
		}
	}
}

// AllPlaced says whether the objects of all live samples are where they should be. The caller holds Mu.
func (l *Lives) AllPlaced() bool { return l.placed == l.live }

// SampleAt gives the sample of that id if it lived after collection gc, nil if not. The caller holds Mu.
func (l *Lives) SampleAt(id, gc uint64) *Sample {
	for x := l.Find(id); x != nil; x = &l.All[x.before-1] {
		if x.At(gc) {
			return x.Sample
		}
		if x.before == 0 {
			break
		}
	}
	return nil
}

// Live gives all samples that lived after collection gc, by id.
func (l *Lives) Live(gc uint64) *Live {
	l.Mu.RLock()
	defer l.Mu.RUnlock()
	live := &Live{}
	for i := range l.All {
		if x := &l.All[i]; x.At(gc) {
			live.Put(x.Sample.ID, x.Sample)
		}
	}
	return live
}
