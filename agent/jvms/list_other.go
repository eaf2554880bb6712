//go:build !linux

package jvms

import (
	"context"
	"errors"
)

// List is for Linux.
func List() ([]JVM, error) { return nil, errors.ErrUnsupported }

// Inspect is for Linux.
func Inspect(pid int) (JVM, error) { return JVM{}, errors.ErrUnsupported }

// FootprintOf is for Linux.
func FootprintOf(pid int, startTicks uint64) (Footprint, error) {
	return Footprint{}, errors.ErrUnsupported
}

// Kills is for Linux: nothing is known here.
type Kills struct{}

// KillsOf is for Linux.
func KillsOf(pid int, startTicks uint64) (Kills, error) { return Kills{}, errors.ErrUnsupported }

// Killed says that nothing is known.
func (k *Kills) Killed() (scope, limit uint64) { return 0, 0 }

// Watch is for Linux.
func Watch(ctx context.Context, f func(added, ended []JVM)) error { return errors.ErrUnsupported }

func watch(ctx context.Context, wanted func(pid int) bool, f func(added, ended []JVM)) error {
	return errors.ErrUnsupported
}

func exists(pid int) bool { return false }

func runsNativeImage(pid int) bool { return false }

// Cgroup is "": there are none here.
func Cgroup(int) string { return "" }
