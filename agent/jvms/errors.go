package jvms

import (
	"errors"
	"fmt"
	"strings"
)

// NotFoundError says that no JVM matches a reference. Process says that there is a process of that pid, but no JVM;
// NativeImage, that it runs Java all the same.
type NotFoundError struct {
	Ref         string
	Process     bool
	NativeImage bool
}

func (e *NotFoundError) Error() string {
	if e.NativeImage {
		return fmt.Sprintf("process %s is %s, which has no JVM: heapcam records only HotSpot JVMs", e.Ref, nativeImage)
	}
	if e.Process {
		return fmt.Sprintf("process %s is not a JVM", e.Ref)
	}
	return fmt.Sprintf("no JVM matches %q on this host", e.Ref)
}

// AmbiguousError says that several JVMs match a reference.
type AmbiguousError struct {
	Ref     string
	Matches []JVM
}

func (e *AmbiguousError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q matches %d JVMs:", e.Ref, len(e.Matches))
	for i, j := range e.Matches {
		if i == 8 {
			b.WriteString(" …")
			break
		}
		fmt.Fprintf(&b, " %s (%s)", j.ID, j.Name)
	}
	return b.String()
}

// Obstacle is the kind of a *RecordError, for who decides by it: exit codes, counters, whether to try again.
type Obstacle int

// Obstacles.
const (
	Unrecordable Obstacle = iota + 1 // this JVM cannot be recorded
	Denied                           // we lack the rights
	Ended                            // the JVM has ended
	Already                          // it is being recorded already
	NoRing                           // the probe was loaded, and its ring did not appear in time
)

// RecordError says why a JVM is not recorded.
type RecordError struct {
	Obstacle Obstacle
	err      error
}

func (e *RecordError) Error() string { return e.err.Error() }
func (e *RecordError) Unwrap() error { return e.err }

// Errorf gives a *RecordError.
func Errorf(o Obstacle, format string, args ...any) error {
	return &RecordError{o, fmt.Errorf(format, args...)}
}

// ObstacleOf gives the kind of the *RecordError in err; 0: there is none.
func ObstacleOf(err error) Obstacle {
	var e *RecordError
	if errors.As(err, &e) {
		return e.Obstacle
	}
	return 0
}
