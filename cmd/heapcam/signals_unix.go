//go:build unix

package main

import (
	"os"
	"syscall"
)

// stopSignals end record and agent in order.
func stopSignals() []os.Signal { return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} }
