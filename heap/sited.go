package heap

import (
	"github.com/heapcam/heapcam/heap/samples"
	"github.com/heapcam/heapcam/trace"
)

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
			id := r.AddSited(uint64(o.Type), 8*o.Words, r.Symbols.Site(x.Frame), gc, time)
			put = append(put, sited{x.Addr, id})
		}
	}
	for _, x := range put {
		r.State.SetSample(x.addr, x.id, gc)
	}
	if !r.HasSited() {
		return
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
