package segment

import (
	"errors"
	"fmt"
)

var (
	// ErrTorn says that a file ends inside a frame: the writer was stopped. What came before is sound.
	ErrTorn = errors.New("torn")
	// ErrCorrupt says that a file does not hold what was written.
	ErrCorrupt = errors.New("corrupt")
)

// DamageError says where a file is torn or corrupt (Err: ErrTorn or ErrCorrupt). Reading continues behind it.
type DamageError struct {
	File   string
	Offset int64
	Why    string
	Err    error
	Whole  bool // it is about the whole file: the offset says nothing

	last bool // no whole frame follows
}

func (e *DamageError) Error() string {
	if e.Whole {
		return fmt.Sprintf("%s: %s", e.File, e.Why)
	}
	return fmt.Sprintf("%s: %v at byte %d: %s", e.File, e.Err, e.Offset, e.Why)
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

// NotOurs says that a file of size bytes is not one of heapcam's. An empty file is torn: a recorder may have been
// stopped before it wrote.
func NotOurs(file string, size int64) error {
	if size == 0 {
		return &DamageError{File: file, Why: "the file is empty", Err: ErrTorn, Whole: true, last: true}
	}
	return &DamageError{File: file, Why: "this is not a heapcam recording", Err: ErrCorrupt, Whole: true}
}

func Torn(file string, at int64, why string) error {
	return &DamageError{File: file, Offset: at, Why: why, Err: ErrTorn, last: true}
}
