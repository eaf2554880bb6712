package shmring

import (
	"context"
	"time"
)

// Bounds of Wait's polling: quick while much data flows, at rest ten looks a second (each is two or three preads).
const (
	pollMin = time.Millisecond
	pollMax = 100 * time.Millisecond
	// much is what the newest Read has to give for quick polling, bytes: a look that finds little costs more than it
	// reads.
	much = 64 << 10
	// pollHurried is pollMax once somebody waits for the end (Hurry).
	pollHurried = 5 * time.Millisecond
	beatEvery   = uint64(time.Second)
	lookEvery   = 500 * time.Millisecond // for a producer that died
)

// Wait returns nil as soon as committed data lies behind the cursor. It keeps the agent's heartbeat going. When
// nothing is left to read and nothing will come it gives ErrEnded or ErrGone; it does so in that order: all that was
// committed is read first. Other errors: the context's, and those of Read.
func (r *Ring) Wait(ctx context.Context) error {
	poll, most, hurry := r.firstPoll(), pollMax, r.hurry
	var timer *time.Timer
	for {
		// State and life before head: what they report was committed before.
		s, still, err := r.glance()
		if err != nil {
			return err
		}
		life := Alive
		if s.State.Ended() {
			life = Ended
		} else if now := time.Now(); now.Sub(r.lookedAt) >= lookEvery || hurry == nil {
			r.lookedAt = now
			life = r.alive(s)
		}
		var n uint64
		if !still || life != Alive || s.State == StateMoved {
			n, err = r.backlog()
		}
		switch {
		case err != nil:
			return err
		case n > 0:
			return nil
		case life == Ended:
			return ErrEnded
		case life == Gone || s.State == StateMoved: // a probe may have died before it could say so
			// Behind a take-over comes a pause, as behind a poll that found nothing: a chain of rings that never ends
			// takes no more than one that is at rest.
			moved, err := r.follow(s.State == StateMoved && life != Gone)
			if err != nil {
				return err
			}
			if life == Gone && !moved {
				return ErrGone
			}
		}
		rest := poll
		if poll == pollMax {
			rest = UntilTick(pollMax)
		}
		if timer == nil {
			timer = time.NewTimer(rest)
			defer timer.Stop()
		} else {
			timer.Reset(rest)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-hurry:
			hurry, most = nil, pollHurried
			poll = 0
		case <-timer.C:
		}
		poll = min(max(poll*2, pollMin), most)
	}
}

// firstPoll is after what time Wait looks for the second time.
func (r *Ring) firstPoll() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.newest < much {
		return pollMax
	}
	return pollMin
}

// UntilTick returns the time until the next of the moments that divide all time into parts of that length. Rings that
// rest look at the same moments: the process wakes up once for a hundred of them.
func UntilTick(every time.Duration) time.Duration { return every - time.Duration(Monotonic())%every }

// Hurry makes Wait look more often from now on: somebody waits until the ring has been read to its end. Any goroutine
// may call it, also more than once.
func (r *Ring) Hurry() { r.hurryOnce.Do(func() { close(r.hurry) }) }

// Hurried is closed once Hurry was called.
func (r *Ring) Hurried() <-chan struct{} { return r.hurry }

// glance checks that this Ring may read, beats if it is time, and gives the counters of the header, without its texts.
// still says that no data lay behind the cursor.
func (r *Ring) glance() (s Status, still bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, err = r.ours()
	if err == nil && Monotonic()-r.beatAt >= beatEvery {
		err = r.beat()
	}
	return s, s.Head == r.cursor, err
}

// backlog gives how much lies behind the cursor.
func (r *Ring) backlog() (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	head, err := r.stableHead()
	if err != nil {
		return 0, err
	}
	return head - r.cursor, nil
}
