// Package probe holds the native probe, compiled by `make probe` (elsewhere for arm64: `make probe-arm64`) and
// embedded, so that a user installs one file. A binary that was built before `make probe` has no probe, and says so; so
// does a binary for another platform than linux on amd64 or arm64. The C sources beside this file are the probe itself.
package probe

import (
	"bytes"
	"errors"
	"fmt"
)

// ErrNone says that this binary was built without the probe.
var ErrNone = errors.New("this heapcam was built without the probe (build it with `make build`): it can read " +
	"recordings but not record")

// PlatformError says that there is no probe for a platform.
type PlatformError struct{ OS, Arch string }

func (e *PlatformError) Error() string {
	return fmt.Sprintf("heapcam records on linux/amd64 and linux/arm64; on %s/%s no probe is proven: "+
		"this heapcam can read recordings but not record", e.OS, e.Arch)
}

// Is makes it an ErrNone: what cannot record has one exit code.
func (e *PlatformError) Is(target error) bool { return target == ErrNone }

// Version gives the version of the embedded probe, as its rings have it; "" if there is none.
func Version() string {
	b, err := Library()
	if err != nil {
		return ""
	}
	mark := []byte("heapcam-probe-" + "version=")
	i := bytes.Index(b, mark)
	if i < 0 {
		return ""
	}
	rest := b[i+len(mark):]
	const most = 47 // of HC_RING_LEN_PROBE_VERSION
	if end := bytes.IndexByte(rest, 0); end >= 0 {
		return string(rest[:min(end, most)])
	}
	return ""
}
