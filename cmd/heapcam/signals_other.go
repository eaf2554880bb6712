//go:build !unix

package main

import "os"

// stopSignals end record and agent in order.
func stopSignals() []os.Signal { return []os.Signal{os.Interrupt} }
