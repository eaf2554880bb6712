package trace

import (
	"errors"
	"fmt"
)

// ErrTorn says that the bytes end before the block does: the tail of a file or frame that was still being written. What
// came before is good.
var ErrTorn = errors.New("trace: torn block")

// CorruptError says that bytes contradict the format. It is neither a torn tail nor a newer version.
type CorruptError struct {
	Kind   Kind   // kind of the block, 0 when the framing itself is at fault
	Event  string // name of the event, "" when none was reached
	Offset int64  // bytes from the start of the block's payload (of the slice, for framing; of the blob, for tokens)
	Why    string
}

func (e *CorruptError) Error() string {
	where := "framing"
	if e.Kind != 0 {
		where = e.Kind.String()
	}
	if e.Event != "" {
		where += " " + e.Event
	}
	return fmt.Sprintf("trace: corrupt %s at byte %d: %s", where, e.Offset, e.Why)
}

// TooNewError says that a block was written by a newer heapcam than this one can read.
type TooNewError struct{ Version uint8 }

func (e *TooNewError) Error() string {
	return fmt.Sprintf("trace: block of format version %d, this program reads up to %d", e.Version, FormatVersion)
}

// KindError says that a decoder was handed a block of another kind: a mistake of the caller, not of the data.
type KindError struct{ Got, Want Kind }

func (e *KindError) Error() string {
	return fmt.Sprintf("trace: block of kind %v where %v was expected", e.Got, e.Want)
}
