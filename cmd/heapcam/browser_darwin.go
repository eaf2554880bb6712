package main

import "os/exec"

// openBrowser has the desktop open url.
func openBrowser(url string) error {
	c := exec.Command("open", url)
	if err := c.Start(); err != nil {
		return err
	}
	go c.Wait()
	return nil
}
