package ringstore

import (
	"errors"
)

var (
	// ErrNoFile says that Append came before the first Rotate.
	ErrNoFile = errors.New("no ring file is open")
	// ErrOtherRecording says that a folder holds the recording of another session.
	ErrOtherRecording = errors.New("the folder holds the recording of another JVM")
)
