//go:build !linux

package jvms

import (
	"context"
	"errors"
)

// List is for Linux.
func List() ([]JVM, error) { return nil, errors.ErrUnsupported }

// Look is for Linux.
func Look(pid int) (JVM, error) { return JVM{}, errors.ErrUnsupported }

// Watch is for Linux.
func Watch(ctx context.Context, f func(added, gone []JVM)) error { return errors.ErrUnsupported }

func exists(pid int) bool { return false }

// Cgroup is "": there are none here.
func Cgroup(int) string { return "" }
