package segment

import (
	"errors"
	"fmt"
)

var (
	// ErrTorn says that a file ends inside a frame: the writer was stopped. What came before is sound.
	ErrTorn = errors.New("torn: the file ends inside a frame")
	// ErrCorrupt says that a file does not hold what was written.
	ErrCorrupt = errors.New("corrupt")
)

// DamageError says where a file is torn or corrupt (Err: ErrTorn or ErrCorrupt). Reading continues behind it.
type DamageError struct {
	File   string
	Offset int64
	Why    string
	Err    error

	last bool // no whole frame follows
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s: %v at offset %d: %s", e.File, e.Err, e.Offset, e.Why)
}

func (e *DamageError) Unwrap() error { return e.Err }

// TooNewError says that a file was written by a later heapcam. It is not damage.
type TooNewError struct {
	File    string
	Version uint32
	Reads   uint32 // the newest version that this heapcam reads
}

func (e *TooNewError) Error() string {
	return fmt.Sprintf("%s: format version %d is newer than this heapcam reads (%d): use a newer heapcam", e.File,
		e.Version, e.Reads)
}

func Corrupt(file string, at int64, why string) error {
	return &DamageError{File: file, Offset: at, Why: why, Err: ErrCorrupt}
}

func Torn(file string, at int64, why string) error {
	return &DamageError{File: file, Offset: at, Why: why, Err: ErrTorn, last: true}
}
