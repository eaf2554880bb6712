//go:build !linux

package shmring

import "errors"

// OpenOf is for Linux.
func OpenOf(pid int, opt Options) (*Ring, error) { return nil, errors.ErrUnsupported }
