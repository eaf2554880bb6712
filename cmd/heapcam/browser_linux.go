package main

import (
	"errors"
	"os"
	"os/exec"
)

// openBrowser opens url in the user's browser.
func openBrowser(url string) error {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return errors.New("no desktop")
	}
	return startDetached(exec.Command("xdg-open", url))
}

func startDetached(c *exec.Cmd) error {
	if err := c.Start(); err != nil {
		return err
	}
	go func() { _ = c.Wait() }()
	return nil
}
