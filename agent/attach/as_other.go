//go:build !linux

package attach

import "errors"

// As is for Linux.
func As(int, int, func() error) error { return errors.ErrUnsupported }
