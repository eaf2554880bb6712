//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// hangups gives each SIGHUP, until stop is called.
func hangups() (c chan os.Signal, stop func()) {
	c = make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// endSignals end the agent cleanly. SIGHUP makes it reload.
func endSignals() []os.Signal { return []os.Signal{syscall.SIGINT, syscall.SIGTERM} }

// stopSignals end a recording cleanly.
func stopSignals() []os.Signal { return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} }
