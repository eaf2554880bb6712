//go:build unix

package main

import (
	"os/exec"
	"testing"
)

// TestJudgedRest: a file of another recording in an incident does not cost it its verdict; any other failure does.
func TestJudgedRest(t *testing.T) {
	for status, want := range map[string]bool{"0": false, "1": false, "6": true, "9": false} {
		err := exec.Command("/bin/sh", "-c", "exit "+status).Run()
		if judgedRest(err, 10) != want || judgedRest(err, 0) {
			t.Errorf("status %s: %v", status, err)
		}
	}
}
