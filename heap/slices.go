package heap

import (
	"github.com/heapcam/heapcam/trace"
)

// slice takes in a part of a listing.
func (r *Cursor) slice(b trace.Block) error {
	s, err := trace.DecodeSlice(b)
	if err != nil {
		return err
	}
	c := r.pending
	if c != nil && s.GC != c.GC {
		return errLater
	}
	if r.gc != 0 && s.GC != r.gc { // the epoch that it belongs to is missing
		r.forget()
		if s.GC > r.gc {
			r.lost = max(r.lost, s.GC-r.gc)
		}
	}
	r.matcher.Spaces = s.Spaces
	if c != nil {
		r.matcher.Spaces = c.Spaces
		c.SyncProbe += s.Probe
		c.Slice = s.Flags & (trace.SliceFirst | trace.SliceLast)
	}
	r.sweeps.Slice(s.First(), s.Last())
	start := !r.follows && s.First()
	follows, find, err := r.model.slice(s)
	if err != nil {
		return err
	}
	if !follows {
		return nil
	}
	r.follows, r.gc, r.beforePause = true, s.GC, false
	r.Uncompacted = r.Uncompacted || s.Flags&trace.SliceUncompacted != 0
	if start {
		r.relisted = s.GC
		r.matcher.Regions, r.matcher.Eden, r.matcher.Swept = s.Regions, false, false
	}
	r.weigh()
	if s.Last() {
		r.matcher.Swept = r.matcher.Swept && r.sweeps.Swept
		r.Adopt(s.Samples, r.Site, find)
		r.model.site(s.Sited, s.GC, s.Time)
		if c != nil {
			c.Synced = true
		}
	}
	if c == nil && r.Known && r.OnListing != nil {
		r.OnListing(s.GC)
	}
	return nil
}
