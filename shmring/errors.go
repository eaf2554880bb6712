package shmring

import (
	"errors"
	"fmt"
)

var (
	// ErrNotReady says that the file is not (yet) a complete ring: the probe stores the magic last. Try again, within
	// reason.
	ErrNotReady = errors.New("shmring: ring is not complete yet")
	// ErrBusy says that another agent holds the ring.
	ErrBusy = errors.New("shmring: another agent reads this ring")
	// ErrNotAcquired says that Acquire was not called.
	ErrNotAcquired = errors.New("shmring: ring is not acquired")
	// ErrSuperseded says that another agent has taken the ring over. Nothing more may be read or written through this
	// Ring.
	ErrSuperseded = errors.New("shmring: another agent took the ring over")
	// ErrEnded says that the probe has ended in order (at VM death, detached, stopped after errors, refused: see
	// Status) and all it said was read.
	ErrEnded = errors.New("shmring: recording ended")
	// ErrGone says that the JVM has ended without an end marker, and all that it had committed was read.
	ErrGone = errors.New("shmring: the JVM ended without an end marker")
)

// NotRingError says why a file is not a ring that may be opened.
type NotRingError struct {
	Path string
	Why  string
}

func (e *NotRingError) Error() string { return fmt.Sprintf("%s: not a ring: %s", e.Path, e.Why) }

// OwnerError says that the file belongs to another than the JVM's user.
type OwnerError struct {
	Path      string
	UID, Want int
}

func (e *OwnerError) Error() string {
	return fmt.Sprintf("%s: owned by uid %d, expected %d", e.Path, e.UID, e.Want)
}

// TooNewError says that the ring was made by a probe of a later ABI. It is not damage.
type TooNewError struct {
	Path string
	ABI  uint32
}

func (e *TooNewError) Error() string {
	return fmt.Sprintf("%s: ring ABI %d is newer than this heapcam understands (%d)", e.Path, e.ABI, ABI)
}

// ViolationError says that the producer broke the contract; the ring is in quarantine. Pos is a position of the
// stream where one is meant, else 0.
type ViolationError struct {
	Path string
	Pos  uint64
	Why  string
	Err  error // cause, or nil
}

func (e *ViolationError) Error() string {
	s := fmt.Sprintf("%s: contract broken at position %d: %s", e.Path, e.Pos, e.Why)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *ViolationError) Unwrap() error { return e.Err }
