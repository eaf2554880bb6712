// Package samples follows the sampled allocations of a recording: which were taken, which survived a collection (they
// are resolved then) and which of them still live.
//
// Terms: a sample is *pending* from its allocation to the end of the next collection that empties eden, then *live* if
// its object survived, until it is reported dead. It stands for Weight objects of its kind. This package does not know
// where objects are.
package samples

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/heapcam/heapcam/trace"
)

// Sample is a sampled allocation. Birth is the number of the first collection after it. Weight is how many objects of
// its kind it stands for. Told says that the bytecode has told its site, as that of others of its kind: then it stands
// for itself alone (Stands).
type Sample struct {
	trace.Sample
	Birth  uint64
	Weight float64
	Told   bool

	listing uint64 // the newest that reported it
	turn    uint64 // of the tracker when it became live: until the next one nobody else has it
}

// Stands gives how many objects of its kind the sample stands for, and the sampling interval that this follows from:
// 1 and 0 if the bytecode has told its site, as those of the others, or if each allocation was a sample.
func (s *Sample) Stands() (objects float64, interval uint64) {
	if s.Told {
		return 1, 0
	}
	return s.Weight, s.Interval
}

// listings counts those of all trackers: one may have the samples of another.
var listings atomic.Uint64

// Tracker is the state of all samples after the newest collection. Make one with New.
type Tracker struct {
	Live *Live // resolved and not known dead, by id
	// Sampled are the samples that were taken up to the newest collection, Resolved and Died are what it added to Live
	// and took out of it. They stay the tracker's, until the next Begin.
	Sampled, Resolved, Died []*Sample
	// Retold are live samples that stand for more or less than before (Sample.Told), or have been put anew in Live.
	Retold    []*Sample
	Taken     uint64 // samples seen
	LiveBytes uint64 // sizes of the samples in Live

	// Of recordings without addresses (watched.go): every sample up to the newest collection, live samples that it gave
	// up, whether all others stand for twice as many since, and how many samples were watched at all.
	All, Left    []*Sample
	Doubled      bool
	WatchedTaken uint64

	pending pending
	turn    uint64   // how often Begin was called
	sited   uint64   // ids that AddSited has given
	there   []uint64 // of KeepSited
	watched map[uint64]*Sample
}

// New gives a tracker that has seen nothing.
func New() *Tracker { return &Tracker{Live: &Live{}} }

// Resume gives a tracker with these live samples. They become its own.
func Resume(live *Live, taken uint64) *Tracker {
	t := &Tracker{Live: live, Taken: taken}
	for _, s := range live.All() {
		t.LiveBytes += s.Size
		if Sited(s.ID) {
			t.sited = max(t.sited, s.ID-firstSited+1)
		}
	}
	return t
}

// Begin forgets what the collection before has changed.
func (t *Tracker) Begin() {
	clear(t.Sampled)
	clear(t.Resolved)
	clear(t.Died)
	clear(t.Retold)
	clear(t.All)
	clear(t.Left)
	t.turn++
	t.Forget()
}

// Forget empties what the collection before has changed.
func (t *Tracker) Forget() {
	t.Sampled, t.Resolved, t.Died, t.Retold = t.Sampled[:0], t.Resolved[:0], t.Died[:0], t.Retold[:0]
	t.All, t.Left, t.Doubled = t.All[:0], t.Left[:0], false
}

// Take takes in samples whose first collection is birth. site gives the id that stands for a frame's stack.
func (t *Tracker) Take(taken []trace.Sample, birth uint64, site func(frame uint64) uint64) {
	t.Taken += uint64(len(taken))
	all := make([]Sample, len(taken)) // one allocation; survivors are copied out of it, so that it can be freed
	for i, s := range taken {
		s.Frame = site(s.Frame)
		all[i] = Sample{Sample: s, Birth: birth, Weight: trace.Weight(s.Size, s.Interval)}
		if !t.pending.add(&all[i]) {
			break
		}
		t.Sampled = append(t.Sampled, &all[i])
	}
}

// Skip corrects the birth of pending samples: the collections from birth up to before next were not seen.
func (t *Tracker) Skip(birth, next uint64) {
	for _, s := range t.pending.all {
		if s.Birth == birth {
			s.Birth = next
		}
	}
}

// Resolve makes a pending sample live and gives its birth; false if there is no such sample.
func (t *Tracker) Resolve(id uint64) (birth uint64, ok bool) {
	s := t.pending.find(id)
	if s == nil {
		return 0, false
	}
	if t.Live.Get(id) == nil {
		x := *s
		x.turn = t.turn
		t.Resolved = append(t.Resolved, &x)
		t.Live.Put(id, &x)
		t.LiveBytes += x.Size
	}
	return s.Birth, true
}

// Die takes a sample out of Live.
func (t *Tracker) Die(id uint64) {
	delete(t.watched, id)
	if s := t.Live.Get(id); s != nil {
		t.die(s)
	}
}

func (t *Tracker) die(s *Sample) {
	t.Died = append(t.Died, s)
	t.LiveBytes -= s.Size
	t.Live.Delete(s.ID)
}

// EmptyEden takes in that eden was emptied. If the epoch says which samples survived, the pending ones have died. An
// epoch that was written while the ring was taken, or that was not understood, does not say it: then the next one does.
func (t *Tracker) EmptyEden(resolved bool) {
	if resolved {
		t.pending.clear()
	} else {
		t.pending.keep()
	}
}

// Adopt replaces Live by the samples that a sync point reports live. site is as for Take. attach looks for the sample's
// object, gives the sample the object's type if it has none, and says whether the object is there; a sample without an
// object stays pending.
func (t *Tracker) Adopt(reported []trace.LiveSample, site func(uint64) uint64,
	attach func(*trace.LiveSample, *Sample) bool) {
	listing := listings.Add(1)
	for _, l := range reported {
		x, waits := t.Live.Get(l.ID), false
		lived := x != nil
		if x == nil {
			x = t.pending.find(l.ID)
			waits = x != nil
		}
		if x == nil {
			x = &Sample{
				Sample: trace.Sample{ID: l.ID, Thread: l.Thread, Size: l.Size, Interval: l.Interval,
					Frame: site(l.Frame)},
				Birth: l.Birth, Weight: trace.Weight(l.Size, l.Interval),
			}
		}
		if l.Birth != 0 { // the probe knows it even if epochs were lost
			x.Birth = l.Birth
		}
		if !attach(&l, x) {
			// A walk may name samples of eden, whose objects are in no list: they enter the state later, or never.
			if !waits {
				t.pending.add(x)
			}
			continue
		}
		if waits {
			y := *x
			x = &y
		}
		x.listing = listing
		if !lived {
			x.turn = t.turn
			t.Live.Put(l.ID, x)
			t.Resolved = append(t.Resolved, x)
		}
	}
	// Most that lived are reported again. So the map stays, and only what is gone leaves it.
	t.LiveBytes = 0
	for id, x := range t.Live.All() {
		if x.listing != listing && !Sited(id) { // no sync point reports these: see KeepSited
			t.Died = append(t.Died, x)
			t.Live.Delete(id)
			continue
		}
		t.LiveBytes += x.Size
	}
	slices.SortFunc(t.Resolved, func(a, b *Sample) int { return cmp.Compare(a.ID, b.ID) })
}

// replace makes live the live samples.
func (t *Tracker) replace(live *Live) {
	t.LiveBytes = 0
	for id, x := range live.All() {
		t.LiveBytes += x.Size
		if t.Live.Get(id) == nil {
			t.Resolved = append(t.Resolved, x)
		}
	}
	for id, x := range t.Live.All() {
		if live.Get(id) == nil {
			t.Died = append(t.Died, x)
		}
	}
	slices.SortFunc(t.Resolved, func(a, b *Sample) int { return cmp.Compare(a.ID, b.ID) })
	t.Live = live
}
