// Package syncpoint decides when a sync point is requested and when a file begins with one (ICPE'16 §3.3). It is a
// state machine without clock, goroutine or I/O: the caller passes sizes in and gets requests back. What happens when
// no collection comes in time is decided by package emergency.
//
// Terms. A *natural* collection is one that the application caused.
//
// Invariants:
//
//  1. A sync point is requested from the next natural collection. Due says so while it has not come.
//  2. A request that is not answered within RetryAfter natural collections is made again.
//  3. When a file could not begin, the next attempt waits twice as many collections as the one before. Otherwise
//     listings that cannot be kept would cost the application pauses for nothing.
//  4. While no sync point fits into the ring at all, files begin without one. Attempts become rarer as in 3.
//  5. A sync point begins a new file only if rotation is wanted. Forced ones are stored in the open file.
//
// What it does not do: it knows no files and no ring. The caller sends its requests.
package syncpoint

// Store is how the store stands: the open file, bytes, and whether it has reached its target or the total its limit.
type Store struct {
	Active int64
	Rotate bool
}

// RetryAfter is how many natural collections may pass unanswered before a sync point is asked for again.
const RetryAfter = 3

// maxBackoff bounds the doubling of invariant 3: at most RetryAfter<<maxBackoff natural collections.
const maxBackoff = 7

// Plan decides when a sync point is asked for and when a file begins.
type Plan struct {
	want     bool  // rotation is wanted
	need     bool  // something was lost: a sync point is wanted, whether or not rotation is
	asked    bool  // the probe was asked
	since    int   // natural collections since it was asked
	maxEpoch int64 // largest recent growth of a file between two looks, as stored
	active   int64 // size of the open file at the last poll
	fails    uint  // files that could not begin, in a row
	skip     bool  // what it has grown by holds a sync point
	ramp     ramp
	blind    int // natural collections until a sync point is tried again, after one that could not fit
}

// New makes a plan.
func New() *Plan { return &Plan{} }

// Due says that rotation is wanted, that the probe was asked, and that no try has failed: what else would help is a
// sync point now.
func (p *Plan) Due() bool { return p.want && p.asked && p.fails == 0 && !p.ramp.open }

// Wanted says that rotation is wanted.
func (p *Plan) Wanted() bool { return p.want }

// Rotate says whether the sync point that has come begins a new file. After a loss it does too: the old file ends where
// it was whole.
func (p *Plan) Rotate() bool { return p.want }

// Natural says that an epoch of a natural collection has come.
func (p *Plan) Natural() {
	p.since++
	p.blind = max(p.blind-1, 0)
}

// Synced says that a sync point is in place. It ends a ramp.
func (p *Plan) Synced() {
	p.need, p.skip, p.ramp.open = false, true, false
	if !p.want {
		p.asked, p.fails = false, 0
	}
}

// Began says that a file has begun. A ramp of the one before is over.
func (p *Plan) Began() {
	p.skip, p.ramp.open = true, false
	p.want, p.need, p.asked, p.since, p.fails = false, false, false, 0, 0
}

// Failed says that a file could not begin: the sync point was too large for what is left, or the disk failed.
func (p *Plan) Failed() {
	p.fails = min(p.fails+1, maxBackoff)
	p.want, p.asked, p.since = true, true, 0
}

// Refused says that a sync point that was to begin at once was not taken: the next poll may request another. The probe
// has ended its ramp with it.
func (p *Plan) Refused() { p.need, p.asked, p.ramp.open = true, false, false }

// Skipped says that a sync point was left out on purpose. The probe has ended its ramp with it.
func (p *Plan) Skipped() { p.rampLost() }

// TooLarge says that the ring cannot hold a sync point even if it evicts all others: none is requested now.
func (p *Plan) TooLarge() {
	p.blind = RetryAfter << p.fails
	p.fails = min(p.fails+1, maxBackoff)
	p.asked = false
}

// Retry says that there is more room than there was: what did not fit may fit now.
func (p *Plan) Retry() {
	p.fails, p.blind = 0, 0
	p.asked = false
	p.need = true
}

// Blind says that files begin without a sync point, after any natural collection.
func (p *Plan) Blind() bool { return p.blind > 0 }

// Unlisted says that a file has begun without a sync point because none fits.
func (p *Plan) Unlisted() {
	p.skip, p.ramp.open = true, false
	p.want, p.asked, p.since = false, false, 0
}

// Lost says that epochs were lost: a reader has to start anew behind the gap.
func (p *Plan) Lost() {
	p.need = true
	p.rampLost()
}

// Reserve is the room that must be left, bytes: the epoch that ends the old file, and the one after it if no sync point
// comes with the first. The sync point itself needs none of it: its size is known when its file begins, and the oldest
// files go for it by need.
func (p *Plan) Reserve() int64 { return 2*p.maxEpoch + 64<<10 }

// Next looks after each batch, and says whether the probe is to be asked for a sync point in the next natural
// collection.
func (p *Plan) Next(st Store) bool {
	if !p.skip {
		p.maxEpoch = max(p.maxEpoch-p.maxEpoch/16, st.Active-p.active)
	}
	p.active, p.skip = st.Active, false
	if p.ramp.open && !st.Rotate {
		return false
	}
	p.rampLost() // the store wants another file before this one is complete: it has refused something
	p.want = p.want || st.Rotate
	if !p.want && !p.need || p.blind > 0 {
		return false
	}
	if !p.asked || p.since >= RetryAfter<<p.fails {
		p.asked, p.since = true, 0
		return true
	}
	return false
}
