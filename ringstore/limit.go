package ringstore

import (
	"math"
	"time"
)

const (
	// surveyEvery is how often free space is asked for.
	surveyEvery = time.Second
	// fullFor is how long a ring does not grow after the disk has said that it is full: quotas show in nothing else.
	fullFor = 10 * time.Second
	// allocMin and allocMax bound the steps in which blocks are taken ahead, bytes.
	allocMin, allocMax = 256 << 10, 8 << 20
)

// Stats is how a store stands, in bytes where not said otherwise. Counters count since Open.
type Stats struct {
	Bytes  int64 // all that occupies blocks
	Active int64 // the open file
	Room   int64 // what it may still take
	Target int64 // T
	Limit  int64 // M(1+d), less while the disk is full or keep_free is reached
	Files  int

	Rotate    bool    // none is open, a file has reached T, or the total M, or a frame was refused
	Guarantee bool    // a sync point and the largest frame fit into d·M, so M(1−d) of complete trace is kept
	Deviation float64 // the effective one: T/M where T had to grow beyond d·M
	Capped    bool    // the disk is full or keep_free is reached: the ring does not grow
	TooSmall  bool    // the last sync point did not fit: see Needed
	Needed    int64   // max_trace_size that would do, 0 unless TooSmall

	Evicted   int64 // files given up for newer ones
	Cut       int64 // sync points that did not fit and were cut off
	Faults    int64 // operations of the file system that failed
	Written   int64 // bytes of frames, as stored
	HeldBytes int64 // of files that were given up while a pull reads them
	Foreign   int   // files of other recordings in the folder, when it was opened: not counted, not touched
}

// sealed is a file that is no longer written to.
type sealed struct {
	path string
	size int64 // occupied
	cut  int64 // length to which a failed write has yet to be cut off; 0: none
}

func (s *Store) total() int64 {
	n := int64(overhead)
	for _, f := range s.files {
		n += f.size
	}
	for _, f := range s.held {
		n += f.size
	}
	return n + s.open()
}

// open is what the active file occupies and needs to be closed: the system may take more than its length (preallocation, extent blocks).
func (s *Store) open() int64 {
	if s.active == nil {
		return 0
	}
	return max(occupied(s.size+indexSize(len(s.x.frames))), s.blocks)
}

// grow is what a frame of n more bytes in the active file takes.
func (s *Store) grow(n int64) int64 {
	return max(occupied(s.size+n+indexSize(len(s.x.frames)+1)), s.open()) - s.open()
}

// reserve is the room that is kept beside the open file for the next head, so that a new file can begin whatever happens. Large heads have
// none, since it would leave too little for all else: there the open file itself may have to go for the next one.
func (s *Store) reserve() int64 {
	r := occupied(headerSize+s.lastRot+s.lastRot/4+indexSize(1)) + block
	if s.lastRot == 0 || r > s.limit()/4 {
		return 0
	}
	return r
}

// room is how much the active file may still grow.
func (s *Store) room() int64 {
	return min(s.limit()-s.total(), s.limit()-overhead-s.heldSize()-s.open()-s.reserve())
}

func (s *Store) heldSize() (n int64) {
	for _, f := range s.held {
		n += f.size
	}
	return n
}

// limit is M(1+d), or what the disk leaves.
func (s *Store) limit() int64 {
	l := s.cfg.MaxTraceSize + int64(float64(s.cfg.MaxTraceSize)*s.cfg.Deviation)
	switch {
	case s.capped:
		return min(l, s.cap)
	case s.growth > 0:
		return min(l, s.growth)
	}
	return l
}

// size0 is M, or what M would be for the limit in force.
func (s *Store) size0() int64 {
	l := s.limit()
	m := s.cfg.MaxTraceSize
	if full := m + int64(float64(m)*s.cfg.Deviation); l < full {
		return int64(float64(l) / (1 + s.cfg.Deviation))
	}
	return m
}

// target is T, at least four sync points (rule 5), at most half of M.
func (s *Store) target() int64 {
	n := int64(math.Ceil(1/s.cfg.Deviation - 1e-9))
	return min(max(s.size0()/n, 4*s.listing), s.size0()/2)
}

// needed is the max_trace_size that holds two files of four heads of so many bytes each.
func needed(head int64) int64 { return 8 * occupied(headerSize+head+indexSize(1)) }

// survey asks what the file system has left. While it has less than keep_free the ring holds what it held when that began, and no more:
// others' hunger does not make it give up what it has.
func (s *Store) survey() {
	now := s.cfg.Now()
	if now.Sub(s.surveyed) < surveyEvery && now.After(s.surveyed) {
		return
	}
	s.surveyed = now
	s.release()
	if s.cfg.KeepFree == 0 {
		if s.capped && now.After(s.fullUntil) {
			s.capped = false
		}
		return
	}
	free, err := s.fs.Free(s.dir)
	if err != nil || free < 0 {
		return
	}
	t := s.total()
	c := t + free - s.cfg.KeepFree
	switch {
	case !s.capped && c < t:
		s.capped, s.cap = true, t
	case s.capped && c > s.cap && now.After(s.fullUntil):
		s.capped = false
	}
	s.growth = max(c, t)
}

// full takes note that the disk is full.
func (s *Store) full() {
	if !s.capped {
		s.capped, s.cap = true, s.total()
	}
	s.fullUntil = s.cfg.Now().Add(fullFor)
}

// Stats says how the ring stands.
func (s *Store) Stats() Stats {
	s.survey()
	t := s.total()
	m := s.size0()
	st := Stats{
		Bytes: t, Active: s.size, Room: s.room(), Target: s.target(), Limit: s.limit(), Files: len(s.files), Capped: s.capped,
		TooSmall: s.tooSmall > 0, Needed: s.tooSmall, Evicted: s.evicted, Cut: s.cut, Faults: s.faults, Written: s.written, HeldBytes: s.heldSize(),
		Foreign: s.foreign,
	}
	if s.active != nil {
		st.Files++
	}
	spare := int64(float64(m) * s.cfg.Deviation)
	// A file holds at least as much else as its listing, as long as the next one fits beside it: otherwise each collection would be listed.
	next := s.lastRot + s.lastRot/4
	enough := s.size >= min(2*s.lastRot, max(s.limit()-overhead-next-spare/4, next))
	// At M a file of less than half its size goes on while half of what was to spare is left: a new one may find the oldest still needed, and
	// would reach M at once.
	half := enough && s.size >= st.Target/2
	st.Rotate = s.active == nil || s.refused > 0 || s.sick >= sickAfter || s.size >= st.Target && enough || t >= m && (half || st.Room < spare/2)
	st.Guarantee = !s.capped && st.Target <= spare && next+s.largest+overhead <= spare
	st.Deviation = max(s.cfg.Deviation, float64(st.Target)/float64(max(m, 1)))
	return st
}
