//go:build !linux && !windows

package place

import (
	"errors"

	"github.com/heapcam/heapcam/probe"
)

// PackagedProbe is where the packages of Linux put the library.
const PackagedProbe = "/usr/lib/heapcam/libheapcam.so"

var errNoRecording = errors.New("this platform can read recordings but not record")

// InstallProbe is for Linux. Errors: probe.ErrNone.
func InstallProbe() (string, error) {
	if _, err := probe.Library(); err != nil {
		return "", err
	}
	return "", errNoRecording
}

// ProbeForOptions is for Linux and Windows. Errors: InstallProbe's.
func ProbeForOptions() (string, error) { return InstallProbe() }
