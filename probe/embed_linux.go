//go:build linux && (amd64 || arm64)

package probe

import "runtime"

// Library is the shared library for this platform, or ErrNone.
func Library() ([]byte, error) {
	b, err := lib.ReadFile("lib/libheapcam-linux-" + runtime.GOARCH + ".so")
	if err != nil {
		return nil, ErrNone
	}
	return b, nil
}
