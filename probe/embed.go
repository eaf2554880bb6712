// Package probe holds the native probe, compiled by `make probe` and embedded, so that one file is the whole product. A binary built on a
// bare clone has none and says so. The C sources beside this file are the probe itself; they import nothing of Go.
package probe

import (
	"bytes"
	"embed"
	"errors"
)

//go:embed lib
var lib embed.FS

// ErrNone says that this binary was built without the probe.
var ErrNone = errors.New("this heapcam was built without the probe (build it with `make build`): it can read recordings but not record")

// Library is the shared library for the platform of this binary's agent (linux, amd64), or ErrNone.
func Library() ([]byte, error) {
	b, err := lib.ReadFile("lib/libheapcam-linux-amd64.so")
	if err != nil {
		return nil, ErrNone
	}
	return b, nil
}

// Version gives the version of the embedded probe, as its rings tell it; "" if there is none.
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
