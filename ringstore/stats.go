package ringstore

import "github.com/heapcam/heapcam/ringstore/segment"

// Stats is how a store stands, in bytes where not said otherwise. Counters count since Open.
type Stats struct {
	Bytes  int64 // all that occupies blocks
	Active int64 // the open file
	Room   int64 // what it may still take
	Target int64 // T
	Limit  int64 // M(1+d), less while the disk is full or keep_free is reached
	Files  int
	// Complete is how many files hold a complete listing.
	Complete int

	Rotate    bool    // none is open, a file has reached T, or the total M, or a frame was refused
	Guarantee bool    // a sync point and the largest frame fit into d·M, so M(1−d) of complete trace is kept
	Deviation float64 // the effective one: T/M where T had to grow beyond d·M
	Capped    bool    // the disk is full or keep_free is reached: the ring does not grow
	TooSmall  bool    // the last sync point did not fit: see Needed
	Needed    int64   // max_trace_size that would do, 0 unless TooSmall

	Evicted   int64 // files evicted for newer ones
	Cut       int64 // sync points that did not fit and were cut off
	Faults    int64 // operations of the file system that failed
	Written   int64 // bytes of frames, as stored
	HeldBytes int64 // of files that were evicted while a pull reads them
	Gone      int64 // files that somebody else removed, moved or cut: what they hold is lost
	Foreign   int   // files of other recordings in the folder, when it was opened: not counted, not touched
}

// Stats gives the store's state.
func (s *Store) Stats() Stats {
	s.survey()
	u, q := s.usage(), s.quota
	st := Stats{
		Bytes: u.Total, Room: q.Room(u), Target: q.Target(), Limit: q.Limit(), Files: len(s.sealed),
		Guarantee: q.Guarantee(overhead), Deviation: q.Deviation(), Capped: q.Capped(),
		TooSmall: q.TooSmall() > 0, Needed: q.TooSmall(),
		Evicted: s.counts.evicted, Cut: s.counts.cut, Faults: s.counts.faults, Written: s.counts.written,
		HeldBytes: u.Held, Gone: s.counts.gone, Foreign: s.foreign,
	}
	for i := range s.sealed {
		if s.sealed[i].Listing == segment.Complete {
			st.Complete++
		}
	}
	st.Rotate = s.active == nil || s.active.Distrusted() || q.Outgrown(s.active.Size(), u)
	if s.active != nil {
		st.Active = s.active.Size()
		if l, _ := s.active.Listing(); l == segment.Complete {
			st.Complete++
		}
		st.Files++
	}
	return st
}
