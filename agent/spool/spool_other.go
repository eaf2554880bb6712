//go:build !linux

package spool

import (
	"context"
	"errors"
)

// New refuses: a spool folder is for Linux.
func New(Config) (*Spool, error) { return nil, errors.New("a spool folder is for Linux") }

// Watch does nothing.
func (s *Spool) Watch(context.Context) {}
