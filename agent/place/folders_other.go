//go:build !linux

package place

import (
	"errors"

	"github.com/heapcam/heapcam/agent/jvms"
)

// RingDir is a folder for a shared ring.
type RingDir struct {
	AsJVM string // its path as the JVM sees it
	Ours  string // as we see it
}

// Remove does nothing: there is none.
func (RingDir) Remove() {}

// MakeRingDir is for Linux.
func MakeRingDir(string, int) (RingDir, error) { return RingDir{}, errNoRecording }

func libraryFor(jvms.JVM, []byte) (string, error) { return "", errors.ErrUnsupported }

func installLibrary([]byte) (string, error) { return "", errNoRecording }

func ringDirIn(jvms.JVM, string, string, bool) (RingDir, error) {
	return RingDir{}, errors.ErrUnsupported
}
