//go:build !unix

package main

import "os"

func hangups() (c chan os.Signal, stop func()) { return nil, func() {} }

func endSignals() []os.Signal { return []os.Signal{os.Interrupt} }

// stopSignals end a recording cleanly.
func stopSignals() []os.Signal { return []os.Signal{os.Interrupt} }
