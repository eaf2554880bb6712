package agent

// ask is what the plan wants of the probe.
type ask int

const (
	askNothing ask = iota
	askSync
	askEmergency
)

// retryAfter is how many natural collections may pass unanswered before a sync point is asked for again.
const retryAfter = 3

// plan decides when a sync point is asked for and when a file begins. Natural collections come first; an emergency only when what is
// left would not hold the next epochs, and no second one before a natural collection has passed.
type plan struct {
	method string // walk, gc, off

	want      bool  // rotation is wanted
	need      bool  // something was lost: a sync point is wanted, whether or not rotation is
	asked     bool  // the probe was asked
	since     int   // natural collections since it was asked
	emergency bool  // asked for since the last natural collection
	maxEpoch  int64 // largest recent growth of a file between two looks, as stored
	active    int64 // size of the open file at the last look
	skip      bool  // what it has grown by holds a sync point
}

func newPlan(method string) *plan { return &plan{method: method} }

// waiting says that the answer to a request is what the session waits for.
func (p *plan) waiting() bool { return p.emergency && p.asked }

func (p *plan) wanted() bool { return p.want }

// rotate says whether the sync point that has come begins a new file. After a loss it does too: the old file ends where it was whole.
func (p *plan) rotate() bool { return p.want }

func (p *plan) epoch(natural bool) {
	if natural {
		p.since++
		p.emergency = false
	}
}

// synced says that a sync point stands in place.
func (p *plan) synced() {
	p.need, p.skip = false, true
	if !p.want {
		p.asked = false
	}
}

// began says that a file has begun.
func (p *plan) began() {
	p.skip = true
	p.want, p.need, p.asked, p.since = false, false, false, 0
}

// failed says that a file could not begin: the sync point was too large for what is left.
func (p *plan) failed() {
	p.want, p.asked, p.since = true, false, 0
}

func (p *plan) lost() { p.need = true }

// reserve is the room that must be left: the epoch that ends the old file, and the one after it if no sync point comes with the first. The
// sync point itself needs none of it: its size is known when its file begins, and the oldest files go for it by need.
func (p *plan) reserve() int64 { return 2*p.maxEpoch + 64<<10 }

// next decides after each batch.
func (p *plan) next(st storeStats) ask {
	if !p.skip {
		p.maxEpoch = max(p.maxEpoch-p.maxEpoch/16, st.Active-p.active)
	}
	p.active, p.skip = st.Active, false
	p.want = p.want || st.Rotate
	if !p.want && !p.need {
		return askNothing
	}
	if !p.asked || p.since >= retryAfter {
		p.asked, p.since = true, 0
		return askSync
	}
	if p.want && p.method != "off" && !p.emergency && st.Room < p.reserve() {
		p.emergency = true
		return askEmergency
	}
	return askNothing
}
