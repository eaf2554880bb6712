//go:build !linux

package session

import "time"

var begun = time.Now()

// threadCPU is the time: elsewhere the system counts a thread's CPU time in steps that are too long here.
func threadCPU() time.Duration { return time.Since(begun) }
