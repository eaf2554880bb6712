package quota

import (
	"errors"
	"fmt"
)

var (
	// ErrNoRoom says that a write would pass the limit and was not made.
	ErrNoRoom = errors.New("no room below the limit")
)

// TooSmallError says that a sync point would take more than a quarter of a segment although T is as large as it can
// be (M/2): a larger one would leave room for less than two segments. It is an ErrNoRoom.
type TooSmallError struct {
	Head   int64 // bytes of the sync point with its definitions, as stored
	Max    int64 // max_trace_size in force
	Needed int64 // max_trace_size that would do
}

func (e *TooSmallError) Error() string {
	return fmt.Sprintf("a sync point of %d bytes needs a recording of at least %d bytes; this one may take %d", e.Head,
		e.Needed, e.Max)
}

// TooSmall gives the max_trace_size that would do, bytes.
func (e *TooSmallError) TooSmall() int64 { return e.Needed }

func (e *TooSmallError) Unwrap() error { return ErrNoRoom }
