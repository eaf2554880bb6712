//go:build !linux

package svc

import "os"

// Kept gives nothing: no manager here keeps descriptors, as all that follow.
func Kept() []*os.File            { return nil }
func Store() bool                 { return false }
func Keep(string, *os.File) error { return ErrUnsupported }
func Drop(string) error           { return ErrUnsupported }
