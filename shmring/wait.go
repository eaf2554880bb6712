package shmring

import (
	"context"
	"time"
)

// Bounds of Wait's polling: quick while data flows, at rest ten looks a second (each is two or three preads).
const (
	pollMin = time.Millisecond
	pollMax = 100 * time.Millisecond
	// pollHurried is pollMax once somebody waits for the end (Hurry).
	pollHurried = 5 * time.Millisecond
	beatEvery   = uint64(time.Second)
	lookEvery   = 500 * time.Millisecond // for a producer that died
)

// Wait returns nil as soon as committed data lies behind the cursor. It keeps the agent's heartbeat going. When
// nothing is left to read and nothing will come it gives ErrEnded or ErrGone; it does so in that order: all that was
// committed is read first. Other errors: the context's, and those of Read.
func (r *Ring) Wait(ctx context.Context) error {
	poll, most, hurry := pollMin, pollMax, r.hurry
	var timer *time.Timer
	var lastLook time.Time
	for {
		// State and life before head: what they report was committed before.
		s, err := r.Status()
		if err != nil {
			return err
		}
		life := Alive
		if s.State.Ended() {
			life = Ended
		} else if now := time.Now(); now.Sub(lastLook) >= lookEvery {
			lastLook = now
			life = r.alive(s)
		}
		n, err := r.waitStep()
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
		if timer == nil {
			timer = time.NewTimer(poll)
			defer timer.Stop()
		} else {
			timer.Reset(poll)
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

// Hurry makes Wait look more often from now on: somebody waits until the ring has been read to its end. Any goroutine
// may call it, also more than once.
func (r *Ring) Hurry() { r.hurryOnce.Do(func() { close(r.hurry) }) }

// Hurried is closed once Hurry was called.
func (r *Ring) Hurried() <-chan struct{} { return r.hurry }

// waitStep beats if it is time and gives the backlog.
func (r *Ring) waitStep() (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.owned(); err != nil {
		return 0, err
	}
	if Monotonic()-r.beatAt >= beatEvery {
		if err := r.beat(); err != nil {
			return 0, err
		}
	}
	head, err := r.stableHead()
	if err != nil {
		return 0, err
	}
	return head - r.cursor, nil
}
