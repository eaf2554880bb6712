package main

import "os/exec"

// openBrowser opens url in the user's browser.
func openBrowser(url string) error {
	c := exec.Command("rundll32", "url.dll,FileProtocolHandler", url)
	if err := c.Start(); err != nil {
		return err
	}
	go c.Wait()
	return nil
}
