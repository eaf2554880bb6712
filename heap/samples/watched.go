package samples

import "github.com/heapcam/heapcam/trace"

// Where objects have no addresses the probe watches a random part of the samples (docs/format/stream.md). Such a sample
// is *watched* while it is not known whether it is garbage, and live once the probe has seen that it is not. It stands
// for Chances times as many objects as another one.

// maxWatched bounds the watched samples. A probe has at most 4096.
const maxWatched = 1 << 16

// TakeWatched is Take where only watched samples are followed: these alone are in Sampled, with what they stand for.
// All has every sample, each with the weight that it has as one of all.
func (t *Tracker) TakeWatched(taken []trace.Sample, birth uint64, site func(frame uint64) uint64) {
	t.Taken += uint64(len(taken))
	for _, s := range taken {
		s.Frame = site(s.Frame)
		x := &Sample{Sample: s, Birth: birth, Weight: trace.Weight(s.Size, s.Interval)}
		t.All = append(t.All, x)
		if s.Chances == 0 || len(t.watched) >= maxWatched {
			continue
		}
		t.WatchedTaken++
		y := *x
		y.Weight *= float64(s.Chances)
		t.watch(&y)
		t.Sampled = append(t.Sampled, &y)
	}
}

func (t *Tracker) watch(x *Sample) {
	if t.watched == nil {
		t.watched = map[uint64]*Sample{}
	}
	t.watched[x.ID] = x
}

// Undecided is how many watched samples are not known to live nor to be dead.
func (t *Tracker) Undecided() int { return len(t.watched) }

// Survive makes a watched sample live.
func (t *Tracker) Survive(id uint64) {
	s := t.watched[id]
	if s == nil {
		return
	}
	delete(t.watched, id)
	t.Resolved = append(t.Resolved, s)
	t.Live.Put(id, s)
	t.LiveBytes += s.Size
}

// Forsake forgets these watched samples, which the probe has given up. Each of the others stands for twice as many.
func (t *Tracker) Forsake(ids []uint64) {
	if len(ids) == 0 {
		return
	}
	for _, id := range ids {
		delete(t.watched, id)
		if s := t.Live.Get(id); s != nil {
			t.Left = append(t.Left, s)
			t.LiveBytes -= s.Size
			t.Live.Delete(id)
		}
	}
	t.Doubled = true
	twice := func(s *Sample) { s.Weight, s.Chances = 2*s.Weight, 2*s.Chances }
	for _, s := range t.watched {
		twice(s)
	}
	for _, s := range t.Live.All() {
		twice(s)
	}
}

// AdoptWatched replaces all watched samples by those that a sync point names. site is as for Take.
func (t *Tracker) AdoptWatched(y *trace.Sync, site func(uint64) uint64) {
	reported := make(map[uint64]*trace.Watching, len(y.Watching))
	for i := range y.Watching {
		reported[y.Watching[i].ID] = &y.Watching[i]
	}
	live, watched := &Live{}, map[uint64]*Sample{}
	for _, l := range y.Samples {
		w := reported[l.ID]
		if w == nil || live.Len()+len(watched) >= maxWatched {
			continue
		}
		x := t.Live.Get(l.ID)
		if x == nil {
			x = t.watched[l.ID]
		}
		if x == nil {
			x = &Sample{Sample: trace.Sample{ID: l.ID, Thread: l.Thread, Type: w.Type, Size: l.Size,
				Interval: l.Interval, Frame: site(l.Frame)}}
		}
		x.Birth, x.Chances = l.Birth, w.Chances
		x.Weight = trace.Weight(l.Size, l.Interval) * float64(w.Chances)
		if w.Survived {
			live.Put(l.ID, x)
		} else {
			watched[l.ID] = x
		}
	}
	t.watched = watched
	t.replace(live)
}
