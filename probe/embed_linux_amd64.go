package probe

import "embed"

//go:embed lib
var lib embed.FS

// Library is the shared library for this platform, or ErrNone.
func Library() ([]byte, error) {
	b, err := lib.ReadFile("lib/libheapcam-linux-amd64.so")
	if err != nil {
		return nil, ErrNone
	}
	return b, nil
}
