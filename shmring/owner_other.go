//go:build !linux

package shmring

import (
	"errors"
	"fmt"
	"os"
)

// Owner is -1: it is for Linux.
func (r *Ring) Owner() int { return -1 }

// OpenFile is for Linux: elsewhere every ring has a file with a name.
func OpenFile(f *os.File, opt Options) (*Ring, error) {
	return nil, fmt.Errorf("shmring: ring without a name: %w", errors.ErrUnsupported)
}

// Reopen is for Linux.
func (r *Ring) Reopen() (*os.File, error) { return nil, errors.ErrUnsupported }

// Unnamed is false: it is for Linux.
func (r *Ring) Unnamed() bool { return false }
