//go:build !linux

package svc

import "os"

// Stored gives nothing: no manager stores descriptors on this system.
func Stored() []*os.File          { return nil }
func Store() bool                 { return false }
func Keep(string, *os.File) error { return ErrUnsupported }
func Drop(string) error           { return ErrUnsupported }
