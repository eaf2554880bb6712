//go:build !unix && !windows

package main

import "errors"

var errNoRecording = errors.New("this platform can read recordings but not record")

func installProbe() (string, error)               { return "", errNoRecording }
func probeForOptions() (string, error)            { return "", errNoRecording }
func (*agentOptions) toolOption() (string, error) { return "", errNoRecording }
func installLibrary([]byte) (string, error)       { return "", errNoRecording }
func makeRingDir(string, int) (string, error)     { return "", errNoRecording }
func privateDir() (string, error)                 { return "", errNoRecording }
func ownDir(string, int) error                    { return errNoRecording }
