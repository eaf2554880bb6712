// Package syncpoint decides when a sync point is asked for, when a file begins with one, and when only an emergency is left
// (ICPE'16 §3.3). It is a state machine without clock, goroutine or I/O: sizes go in, a wish comes out.
//
// Terms. A *natural* collection is one that the application caused; an *emergency* makes a stop of its own.
//
// Invariants:
//
//  1. A sync point is asked for in the next natural collection first. An emergency comes only when the next epochs would not fit.
//  2. No second emergency before a natural collection has passed; with method off there is none.
//  3. A wish that is not answered within RetryAfter natural collections is made again.
//  4. When a file could not begin, the next try waits twice as many collections as the one before: a listing that cannot be kept costs the
//     application pauses for nothing.
//  5. A sync point begins a new file only if rotation is wanted; forced ones stand in place.
//
// What it does not do: it knows no files and no ring; the caller makes its wishes come true.
package syncpoint

// Store is how the store stands, in bytes: the open file, the room below the limit with the oldest files kept, and whether the open file
// has reached its target or the total its limit.
type Store struct {
	Active, Room int64
	Rotate       bool
}

// Ask is what the plan wants of the probe.
type Ask int

const (
	Nothing   Ask = iota
	Sync          // a sync point in the next natural collection
	Emergency     // one now
)

// RetryAfter is how many natural collections may pass unanswered before a sync point is asked for again.
const RetryAfter = 3

// maxBackoff bounds the doubling of invariant 4: at most RetryAfter<<maxBackoff natural collections.
const maxBackoff = 7

// Plan decides when a sync point is asked for and when a file begins. Natural collections come first; an emergency only when what is
// left would not hold the next epochs, and no second one before a natural collection has passed.
type Plan struct {
	method string // walk, gc, off

	want      bool  // rotation is wanted
	need      bool  // something was lost: a sync point is wanted, whether or not rotation is
	asked     bool  // the probe was asked
	since     int   // natural collections since it was asked
	emergency bool  // asked for since the last natural collection
	maxEpoch  int64 // largest recent growth of a file between two looks, as stored
	active    int64 // size of the open file at the last look
	fails     uint  // files that could not begin, in a row
	skip      bool  // what it has grown by holds a sync point
}

// New makes a plan; method is walk, gc or off.
func New(method string) *Plan { return &Plan{method: method} }

// Waiting says that the answer to a request is what the session waits for.
func (p *Plan) Waiting() bool { return p.emergency && p.asked && p.fails == 0 }

// Wanted says that rotation is wanted.
func (p *Plan) Wanted() bool { return p.want }

// Rotate says whether the sync point that has come begins a new file. After a loss it does too: the old file ends where it was whole.
func (p *Plan) Rotate() bool { return p.want }

// Epoch says that an epoch has come, of a natural collection or of an emergency.
func (p *Plan) Epoch(natural bool) {
	if natural {
		p.since++
		p.emergency = false
	}
}

// Synced says that a sync point stands in place.
func (p *Plan) Synced() {
	p.need, p.skip = false, true
	if !p.want && p.fails == 0 {
		p.asked = false
	}
}

// Began says that a file has begun.
func (p *Plan) Began() {
	p.skip = true
	p.want, p.need, p.asked, p.since, p.fails = false, false, false, 0, 0
}

// Failed says that a file could not begin: the sync point was too large for what is left, or the disk failed.
func (p *Plan) Failed() {
	p.fails = min(p.fails+1, maxBackoff)
	p.want, p.asked, p.since = true, true, 0
}

// Lost says that epochs were lost: a reader has to start anew behind the gap.
func (p *Plan) Lost() { p.need = true }

// reserve is the room that must be left: the epoch that ends the old file, and the one after it if no sync point comes with the first. The
// sync point itself needs none of it: its size is known when its file begins, and the oldest files go for it by need.
func (p *Plan) reserve() int64 { return 2*p.maxEpoch + 64<<10 }

// Next decides after each batch.
func (p *Plan) Next(st Store) Ask {
	if !p.skip {
		p.maxEpoch = max(p.maxEpoch-p.maxEpoch/16, st.Active-p.active)
	}
	p.active, p.skip = st.Active, false
	p.want = p.want || st.Rotate
	if !p.want && !p.need {
		return Nothing
	}
	if !p.asked || p.since >= RetryAfter<<p.fails {
		p.asked, p.since = true, 0
		return Sync
	}
	if p.fails == 0 && p.want && p.method != "off" && !p.emergency && st.Room < p.reserve() {
		p.emergency = true
		return Emergency
	}
	return Nothing
}
