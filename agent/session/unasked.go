package session

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

// Reference listings that nobody asked for. Each stops the JVM once, for at most Limits.MaxReferencePause. The session
// asks, and goes on: it never waits for an answer, and nothing in the JVM waits for the session.

const (
	// listingTime is how long an incident waits for its listings: one of the heap, if a storm has left the newest out,
	// and one of references.
	listingTime = 5 * time.Second
	// incidentListing is the least time between the listings of two incidents for the same cause: the second incident
	// would not be kept.
	incidentListing = 10 * time.Minute
	// freshListing is how long a listing serves what asks for the next one: a heap that is nearly full has a storm
	// soon, and then no memory.
	freshListing = 10 * time.Second
	// nearlyFull is the share of the largest heap that is in use after a collection of old space when the heap counts
	// as nearly full: a JVM that runs out of memory often ends before anybody can ask for a listing.
	nearlyFull = 0.75
	// firstListing is the age of a recording whose interval grows at its first listing, refusedAgain the least time
	// between a request that was refused and the next one.
	firstListing, refusedAgain = 30 * time.Second, time.Minute
	// roomAgain is the time from a request for which the probe had too little memory to the next one, for which it has
	// more; so many times in a row at most.
	roomAgain, lackedMost = 2 * time.Second, 2
	// abortedAgain is how many times as long as a listing that was aborted stopped the JVM the next try waits.
	abortedAgain = 100
)

// incident is one that waits for its listings.
type incident struct {
	cause  ringstore.Cause
	reason string
	until  time.Time // and no longer
	heap   bool      // for a listing of the heap
	ticket uint32    // of the request for a reference listing that is not answered; 0: none
	listed ringstore.Listed
}

// unasked is the reference listings of a session that nobody asked for.
type unasked struct {
	waiting  []incident
	asked    time.Time                     // when the newest was asked for
	ticket   uint32                        // of the newest request
	answered bool                          // the newest has been, by
	newest   ringstore.Listed              // this
	stopped  time.Duration                 // for so long it stopped the JVM
	at       map[ringstore.Cause]time.Time // when one was asked for each cause

	every     time.Duration // Limits.ReferencesInterval
	next      time.Time     // when one is due without a cause; zero: never
	full      bool          // one is due because the heap is nearly full
	fullKnown bool          // there is one of the heap when it was
	scheduled uint32        // ticket of the newest that was due
	lacked    int           // the newest of these in a row that lacked room
	spent     uint64        // what those took, ns: the overhead budget counts them
}

// request asks for a reference listing now, or finds that one was asked for a moment ago. why says why there is none.
func (s *Session) request(h *shmring.Status, now time.Time, most time.Duration) (why string) {
	u := &s.refs.unasked
	switch {
	case u.ticket != 0 && now.Sub(u.asked) < freshListing && (!u.answered || u.newest.Why == ""):
		return ""
	case most <= 0:
		return "max_reference_pause is 0"
	case h.References == 0:
		return ErrNoReferences.Error()
	case h.State.Ended():
		return "the JVM had ended"
	case h.State == shmring.StatePaused:
		return "the recording was paused"
	}
	ms := uint32(most.Milliseconds())
	if ms == 0 { // it would mean the probe's default
		return "overhead_cpu leaves no time for it"
	}
	ticket, err := s.ring.RequestReferences(ms)
	if err != nil {
		return err.Error()
	}
	u.ticket, u.asked, u.answered, u.newest = ticket, now, false, ringstore.Listed{}
	return ""
}

// answer takes in the answer to the request ticket and all before it.
func (u *unasked) answer(ticket uint32, a answer) {
	x := ringstore.Listed{GC: a.got.GC, Objects: a.got.Objects}
	if a.err != nil {
		x = ringstore.Listed{Why: a.err.Error()}
	}
	if ticket == 0 { // of an agent before
		return
	}
	if u.ticket != 0 && u.ticket <= ticket {
		u.answered, u.newest, u.stopped = true, x, time.Duration(a.got.StopNS)
	}
	if ticket == u.scheduled {
		u.spent += a.got.StopNS
		var refused *RefusedError
		if u.lacked++; !errors.As(a.err, &refused) || refused.Why != lackedRoom {
			u.lacked = 0
		}
	}
	u.fullKnown = u.fullKnown || u.full && x.Why == ""
	u.full = false
	for i := range u.waiting {
		if w := &u.waiting[i]; w.ticket != 0 && w.ticket <= ticket {
			w.ticket, w.listed = 0, x
		}
	}
}

// alarm begins an incident: it is kept when its listings are stored or refused, or have taken too long. heap: a listing
// of the heap is under way.
func (s *Session) alarm(now time.Time, h *shmring.Status, c ringstore.Cause, reason string, heap bool) {
	u := &s.refs.unasked
	// One at a time: a JVM may claim any number of them while the first one waits. A heap that is exhausted after a
	// storm is one trouble: it takes the place of a storm that waits, and a storm does not come beside it.
	if s.hooks.Freeze == nil || slices.ContainsFunc(u.waiting, func(i incident) bool {
		return i.cause == c || i.cause == ringstore.CauseExhausted
	}) {
		return
	}
	u.waiting = u.waiting[:0] // a storm, if any
	i := incident{cause: c, reason: reason, until: now.Add(listingTime), heap: heap}
	if !u.at[c].IsZero() && now.Sub(u.at[c]) < incidentListing {
		i.listed.Why = "an incident for the same cause had one not long before"
	} else if i.listed.Why = s.request(h, now, s.maxReferencePause()); i.listed.Why == "" {
		if u.at == nil {
			u.at = map[ringstore.Cause]time.Time{}
		}
		u.at[c] = now
		if i.listed = u.newest; !u.answered {
			i.ticket = u.ticket
		}
	}
	u.waiting = append(u.waiting, i)
	s.freezeWaiting(now, false)
}

func (s *Session) maxReferencePause() time.Duration {
	if s.steer.limits == nil {
		return 0
	}
	return s.steer.limits.MaxReferencePause
}

// freezeWaiting keeps the incidents that need not wait any longer. A storm waits for as long as it may: an allocation
// that fails in the meantime is the better reason. ended: nothing more comes from the JVM.
func (s *Session) freezeWaiting(now time.Time, ended bool) {
	u := &s.refs.unasked
	still := u.waiting[:0]
	for _, i := range u.waiting {
		waits := i.cause == ringstore.CauseStorm || i.ticket != 0 || i.heap && s.alarms.stale
		if !ended && now.Before(i.until) && waits {
			still = append(still, i)
			continue
		}
		if i.ticket != 0 && ended {
			i.listed.Why = "the JVM ended before it was taken"
		} else if i.ticket != 0 {
			i.listed.Why = "it was not finished within " + listingTime.String()
		}
		if s.hooks.Freeze != nil {
			s.hooks.Freeze(i.cause, i.reason, i.listed)
		}
	}
	u.waiting = still
}

// stormBegins writes into the recording that a GC storm begins, behind the collection that ended at the time at, and
// begins an incident.
func (s *Session) stormBegins(at uint64, h *shmring.Status) {
	x := s.alarms.storm.begins(at)
	s.out.push(trace.EncodeMeta(trace.Meta{Storms: []trace.Storm{x}}))
	s.alarm(time.Now(), h, ringstore.CauseStorm, x.String(), false)
}

// collected takes in what is in use after a collection of old space.
func (s *Session) collected(p *trace.Pause, after uint64) {
	u, most := &s.refs.unasked, float64(s.in.jvm.MaxHeap)
	if old := p.Kind == trace.PauseFull || p.Kind == trace.PauseMixed; old && most > 0 &&
		float64(after) > nearlyFull*most && !u.fullKnown && time.Since(u.asked) > refusedAgain {
		u.full = true
	}
}

// listReferences asks for the reference listing that is due, if the overhead budget has the time for it, or twice as
// much.
func (s *Session) listReferences(h *shmring.Status, now time.Time) {
	u, l := &s.refs.unasked, s.steer.limits
	if l == nil || l.MaxReferencePause <= 0 || !s.in.known {
		return
	}
	s.schedule(now, l.ReferencesInterval)
	timed := !u.next.IsZero() && !now.Before(u.next)
	if !timed && !u.full || !u.answered && now.Sub(u.asked) < listingTime {
		return
	}
	most := l.MaxReferencePause
	if g := s.steer.budget.governor; g != nil {
		room := g.Room()
		if l.ReferencesInterval >= 0 { // `run` has few, and its verdicts rest on them
			room /= 2
		}
		most = min(most, room)
	}
	was := u.ticket
	if s.request(h, now, most) != "" { // it stays due
		return
	}
	if u.ticket != was {
		u.scheduled = u.ticket
	}
	if timed {
		u.taken(now, s.in.began, l.ReferencesInterval)
	}
}

// schedule sets when the first listing is due, or a later one that was refused: in an eighth of the interval, or soon
// where the probe needs more memory.
func (s *Session) schedule(now time.Time, every time.Duration) {
	u := &s.refs.unasked
	if every != u.every { // a reload
		u.every, u.next = every, time.Time{}
	}
	switch {
	case every == 0:
		u.next = time.Time{}
	case u.next.IsZero() && every < 0:
		u.next = s.in.began.Add(firstListing)
	case u.next.IsZero(): // not at the same time in all JVMs of an agent
		u.next = now.Add(every/2 + rand.N(every/2))
	case u.ticket == u.scheduled && u.answered && u.lacked > 0 && u.lacked <= lackedMost:
		if again := u.asked.Add(roomAgain); again.Before(u.next) {
			u.next = again
		}
	case u.ticket == u.scheduled && u.answered && u.newest.Why != "":
		again := u.asked.Add(max(every/8, refusedAgain))
		if every < 0 { // of an interval that grows: an eighth of what it is now
			again = u.asked.Add(max(u.asked.Sub(s.in.began)/8, abortedAgain*u.stopped))
		}
		if again.Before(u.next) {
			u.next = again
		}
	}
}

// taken sets when the next one is due. every below 0: when the recording is half as old again, so that the newest
// listing is never older than a third of it, and a long run has few. What grew between two listings tells a leak from a
// cache that had not been full.
func (u *unasked) taken(now, began time.Time, every time.Duration) {
	if every > 0 {
		u.next = now.Add(every)
		return
	}
	for u.next = began.Add(firstListing); !now.Before(u.next); {
		u.next = began.Add(u.next.Sub(began) * 3 / 2)
	}
}
