//go:build !(linux && (amd64 || arm64))

package probe

import "runtime"

// Library gives an error that names this platform: no probe for it is proven.
func Library() ([]byte, error) { return nil, &PlatformError{runtime.GOOS, runtime.GOARCH} }
