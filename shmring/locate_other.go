//go:build !linux && !windows

package shmring

import "errors"

// OpenOf is for Linux.
func OpenOf(pid int, opt Options) (*Ring, error) { return nil, errors.ErrUnsupported }
