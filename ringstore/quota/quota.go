package quota

import (
	"fmt"
	"math"
	"time"

	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

const (
	// surveyEvery is how often free space is asked for.
	surveyEvery = time.Second
	// fullFor is how long a ring does not grow after the disk has said that it is full: quotas show in nothing else.
	fullFor = 10 * time.Second
	// stepMin and stepMax bound the steps in which blocks are taken ahead, bytes.
	stepMin, stepMax = 256 << 10, 8 << 20
	// capLeast is a size of a ring that others' hunger does not make smaller, bytes.
	capLeast = 256 << 10
)

// Bounds are the limits that a user has set.
type Bounds struct {
	Max       int64   // M, bytes
	Deviation float64 // d, 0 < d ≤ 0.5
	KeepFree  int64   // bytes that shall stay free on the file system; 0: no care is taken before the disk is full
}

// Usage is what a ring occupies at an instant, bytes.
type Usage struct {
	Total    int64 // everything, the three below among it
	Overhead int64 // folder and documents
	Open     int64 // the open segment, and what it needs to be sealed
	Held     int64 // segments that were evicted while a pull reads them
	Ramping  bool  // the listing of the open segment is not complete
}

// Quota decides how large a ring may be and its segments get. It knows the user's bounds, what the disk has said, and
// how large recent frames were; it never touches a file. All sizes are bytes that are occupied.
//
// Owner: a store.
// Lifetime: that of the store.
// Concurrency: one goroutine.
// Errors: its methods return no I/O errors; they refuse with ErrNoRoom or *TooSmallError.
type Quota struct {
	bounds Bounds

	capped    bool  // the disk is full, or keep_free is reached
	cap       int64 // what the ring held then
	cappedAt  time.Time
	growth    int64 // what keep_free leaves, as last seen; 0: not limited by it
	surveyed  time.Time
	fullUntil time.Time

	head     int64 // stored bytes of the last head
	listing  int64 // stored bytes of the last head that held a sync point, or of the last ramp
	rolling  bool  // the last listing was a ramp
	largest  int64 // recent frame, fading
	tooSmall int64 // M that the last sync point needs; 0: it fits
	refused  int64 // what the last refused frame needed; 0 since a new segment has begun, which must have room for it
}

// New makes a quota.
func New(b Bounds) *Quota { return &Quota{bounds: b} }

// Bounds gives the limits in force.
func (q *Quota) Bounds() Bounds { return q.bounds }

// Resize makes M what it says and forgets that a sync point was too large.
func (q *Quota) Resize(m int64) { q.bounds.Max, q.tooSmall = m, 0 }

// Limit is M(1+d), or what the disk leaves: the ring never occupies more.
func (q *Quota) Limit() int64 {
	l := q.full()
	switch {
	case q.capped:
		return min(l, q.cap)
	case q.growth > 0:
		return min(l, q.growth)
	}
	return l
}

func (q *Quota) full() int64 { return q.bounds.Max + q.share(q.bounds.Max) }

// share is d of n.
func (q *Quota) share(n int64) int64 { return int64(float64(n) * q.bounds.Deviation) }

// Max is M, or what M would be for the limit in force.
func (q *Quota) Max() int64 {
	if l := q.Limit(); l < q.full() {
		return int64(float64(l) / (1 + q.bounds.Deviation))
	}
	return q.bounds.Max
}

// Target is T, at least four sync points (rule 3), at most half of M.
func (q *Quota) Target() int64 {
	n := int64(math.Ceil(1/q.bounds.Deviation - 1e-9))
	return min(max(q.Max()/n, 4*q.listing), q.Max()/2)
}

// Low is what a ring keeps when a new segment begins. That one shall have room to reach T before the total reaches M.
// When sync points are large T is more than d·M, and less than M(1−d) stays: else the ring would hold little but sync
// points.
func (q *Quota) Low() int64 { return q.Max() - max(q.share(q.Max()), q.Target()) }

// Capped says that the disk is full or keep_free is reached: the ring does not grow.
func (q *Quota) Capped() bool { return q.capped }

// reserve is the room that is kept beside the open segment for the next head, so that a new segment can begin whatever
// happens. Large heads have none, since it would leave too little for all else: there the open segment itself may have
// to go for the next one.
func (q *Quota) reserve() int64 {
	r := vfs.Occupied(segment.HeaderSize+q.next()+segment.IndexSize(1)) + vfs.Block
	if q.head == 0 || r > q.Limit()/4 {
		return 0
	}
	return r
}

// next is how large the next head may be; of a ramp, what is written from its first slice to its last.
func (q *Quota) next() int64 {
	if q.rolling {
		return q.head + q.listing + q.listing/4 + 2*q.largest
	}
	return q.head + q.head/4
}

// Ramp takes note of a head that begins a ramp, and gives what takes that back.
func (q *Quota) Ramp(stored int64) (undo func()) {
	head, rolling := q.head, q.rolling
	q.head, q.rolling = stored, true
	return func() { q.head, q.rolling = head, rolling }
}

// Ramped takes note of a ramp that took so many bytes, epochs between its slices included. One that is too large for
// two segments of four such shows in TooSmall.
func (q *Quota) Ramped(stored int64) {
	q.listing, q.rolling, q.tooSmall = stored, true, 0
	if n := needed(stored); n > q.Max() {
		q.tooSmall = n
	}
}

// Reserve is the room that the next listing needs, bytes.
func (q *Quota) Reserve() int64 { return q.next() }

// extents is what a file that grows may take beside its content: on a disk with little room in one piece the file
// system needs a block more for where the pieces are, and it shows only when the content is written.
const extents = vfs.Block

// Room is how much the open segment may still grow.
func (q *Quota) Room(u Usage) int64 {
	l := q.Limit()
	return min(l-u.Total-extents, l-u.Overhead-u.Held-u.Open-q.reserve())
}

// Ahead returns up to where blocks are to be taken for a segment that needs so many bytes and has taken some up to
// have; 0: no further. Near the limit frames take what they need.
func (q *Quota) Ahead(needs, have int64, u Usage) (to int64) {
	if q.capped || needs <= have {
		return 0
	}
	step := min(max(q.Target()/16, stepMin), stepMax) / vfs.Block * vfs.Block
	if to = vfs.Occupied(needs + step); to-u.Open > q.Room(u)/2 {
		return 0
	}
	return to
}

// Fits says whether the open segment may grow by so many bytes: nil, or an ErrNoRoom. A refusal is remembered, and the
// next segment begins with room for what was refused.
func (q *Quota) Fits(need int64, u Usage) error {
	room := q.Room(u)
	if need <= 0 || need <= room {
		return nil
	}
	if n := need + 2*vfs.Block; n <= q.Limit()/2 { // larger ones never fit
		q.refused = max(q.refused, n)
	}
	return fmt.Errorf("%d bytes needed, %d left: %w", need, max(room, 0), ErrNoRoom)
}

// Refuse remembers that something of n bytes had no place in the open segment.
func (q *Quota) Refuse(n int64) { q.refused = max(q.refused, n) }

// Refused is what the last refused frame needed.
func (q *Quota) Refused() int64 { return q.refused }

// Frame takes note of the size of a frame that is to be appended.
func (q *Quota) Frame(stored int64) { q.largest = max(q.largest-q.largest/64, stored) }

// Listing says whether a sync point of so many bytes fits: nil or *TooSmallError.
func (q *Quota) Listing(stored int64) error {
	m := q.Max()
	n := needed(stored)
	if n <= m {
		return nil
	}
	q.tooSmall = n
	return &TooSmallError{Head: stored, Max: m, Needed: n}
}

// needed is the M that holds two segments of four heads of so many bytes each.
func needed(head int64) int64 { return 8 * vfs.Occupied(segment.HeaderSize+head+segment.IndexSize(1)) }

// Head takes note of the head that a new segment is to begin with, and gives what takes that back.
func (q *Quota) Head(stored int64, listing bool) (undo func()) {
	head, last, rolling := q.head, q.listing, q.rolling
	q.head, q.listing, q.rolling = stored, 0, false
	if listing {
		q.listing, q.tooSmall = stored, 0
	}
	return func() { q.head, q.listing, q.rolling = head, last, rolling }
}

// Began forgets what was refused: a new segment has begun.
func (q *Quota) Began() { q.refused = 0 }

// LastHead is the size of the last head, as stored.
func (q *Quota) LastHead() int64 { return q.head }

// Due says whether it is time for a survey, and takes note that there was one.
func (q *Quota) Due(now time.Time) bool {
	if now.Sub(q.surveyed) < surveyEvery && now.After(q.surveyed) {
		return false
	}
	q.surveyed = now
	return true
}

// Survey takes note of what is free on the file system; negative: that is not known. While there is less than keep_free
// the ring holds what it held when that began, and no more: others' hunger does not make it give up what it has.
func (q *Quota) Survey(now time.Time, total, free int64) {
	if q.bounds.KeepFree == 0 {
		if q.capped && now.After(q.fullUntil) {
			q.capped = false
		}
		return
	}
	if free < 0 {
		return
	}
	c := total + free - q.bounds.KeepFree
	switch {
	case !q.capped && c < total:
		q.capped, q.cap = true, total
	case q.capped && c > q.cap && now.After(q.fullUntil):
		q.capped = false
	}
	q.growth = max(c, total)
}

// DiskFull takes note that the disk has said that it is full. A ring that gives up a segment for the next one may lose
// that room to others. It continues inside what it has left: with the old cap it would give up nothing more, and record
// nothing while the disk is full. It gives way once in fullFor at most, for the sake of what it holds.
func (q *Quota) DiskFull(now time.Time, total int64) {
	if !q.capped || total < q.cap && !now.Before(q.cappedAt.Add(fullFor)) {
		if !q.capped || total >= capLeast {
			q.cap = total
		}
		q.capped, q.cappedAt = true, now
	}
	q.fullUntil = now.Add(fullFor)
}

// Outgrown says whether an open segment of so many bytes is large enough: a new one is to begin.
func (q *Quota) Outgrown(size int64, u Usage) bool {
	if u.Ramping { // a new segment would not be complete sooner
		return q.refused > 0
	}
	m := q.Max()
	spare, next := q.share(m), q.next()
	// The open segment may be the only complete one, and has to stay until the next one is.
	room := q.Limit() - u.Overhead - u.Held - u.Open - q.reserve()
	if q.rolling && q.reserve() > 0 && size >= 2*q.listing && room < 2*q.largest {
		return true
	}
	// A segment holds at least as much else as its listing, as long as the next one fits beside it: otherwise each
	// collection would be listed.
	enough := size >= min(2*max(q.head, q.listing), max(q.Limit()-u.Overhead-next-spare/4, next))
	// At M a segment of less than half its size continues while half of what was to spare is left: a new one may find
	// the oldest still needed, and would reach M at once.
	half := enough && size >= q.Target()/2
	return q.refused > 0 || size >= q.Target() && enough || u.Total >= m && (half || q.Room(u) < spare/2)
}

// Guarantee says that a sync point and the largest frame fit into d·M, so that M(1−d) of complete trace is kept.
func (q *Quota) Guarantee(overhead int64) bool {
	spare := q.share(q.Max())
	return !q.capped && q.Target() <= spare && q.next()+q.largest+overhead <= spare
}

// Deviation is the effective d: T/M where T had to grow beyond d·M.
func (q *Quota) Deviation() float64 {
	return max(q.bounds.Deviation, float64(q.Target())/float64(max(q.Max(), 1)))
}

// TooSmall is the M that the last sync point needs; 0: it fits.
func (q *Quota) TooSmall() int64 { return q.tooSmall }
