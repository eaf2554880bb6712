//go:build !linux && !darwin && !windows

package main

import "errors"

func openBrowser(string) error {
	return errors.New("heapcam does not know how to start one on this system")
}
