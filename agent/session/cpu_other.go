//go:build !linux

package session

import "time"

var begun = time.Now()

// threadCPU is the time: elsewhere a thread's own is told in steps that are longer than what is measured here.
func threadCPU() time.Duration { return time.Since(begun) }
