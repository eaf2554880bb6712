package heap

import (
	"github.com/heapcam/heapcam/heap/samples"
	"github.com/heapcam/heapcam/trace"
)

// place is the bytecode of an innermost frame.
type place struct{ method, bci uint64 }

func (r *Replay) placeOf(frame uint64) place {
	f := r.Symbols.Frames[frame]
	return place{f.Method, uint64(f.BCI)}
}

// told is the bytecodes that have told sites, and since which collection.
type told struct {
	since map[place]uint64
	lost  uint64 // the newest collection at which what they had told was lost
}

// tell takes in that a bytecode tells sites.
func (t *told) tell(p place, gc uint64) {
	if t.since == nil {
		t.since = map[place]uint64{}
	}
	if _, ok := t.since[p]; !ok {
		t.since[p] = gc
	}
}

// tells says whether objects that were born then have the site if p made them. A sampled one may not: a sample sends
// the allocation another way.
func (t *told) tells(p place, birth uint64) bool {
	since, ok := t.since[p]
	return ok && since <= birth && birth > t.lost
}

// loseSites takes in that no object of that time has its site any more.
func (r *Replay) loseSites(gc uint64) {
	r.told.lost = gc
	r.Untell()
}

// site puts what an epoch or listing says of sites on objects without a sample, and forgets those of objects that died.
func (r *Replay) site(all []trace.SitedAddr, gc, time uint64) {
	type sited struct{ addr, id uint64 }
	var put []sited // behind all looks: a sample that was just put there has to be sorted in before the next look
	for _, x := range all {
		o, ok := r.State.At(x.Addr)
		switch {
		case !ok && !r.listed.Unknown.Has(x.Addr):
			r.fault("collection %d: a site is of an object at %d, where nothing stands", r.gc, x.Addr)
		case ok && o.Sample == 0:
			frame := r.Symbols.Site(x.Frame)
			id := r.AddSited(uint64(o.Type), 8*o.Words, frame, gc, time)
			put = append(put, sited{x.Addr, id})
			r.told.tell(r.placeOf(frame), gc)
		case ok && !samples.Sited(o.Sample):
			if s := r.Live.Get(o.Sample); r.OnTold != nil && s != nil && !s.Told {
				r.OnTold(s, r.Symbols.Site(x.Frame))
			}
			r.Tell(o.Sample)
		}
	}
	for _, x := range put {
		r.State.SetSample(x.addr, x.id, gc)
	}
	if !r.HasSited() {
		return
	}
	for _, s := range r.Resolved {
		if !samples.Sited(s.ID) && r.told.tells(r.placeOf(s.Frame), s.Birth) {
			r.Tell(s.ID)
		}
	}
	r.KeepSited(func(there func(uint64)) {
		r.State.EachMark(func(_, id uint64) { there(id) })
	})
}

// keepSite takes a site over to a listing of the same heap.
func keepSite(old, next *State, addr, id uint64) {
	if !samples.Sited(id) {
		return
	}
	was, _ := old.At(addr)
	if o, ok := next.At(addr); ok && o.Type == was.Type && o.Words == was.Words {
		next.SetSample(addr, id, uint64(was.Birth))
	}
}
