package shmring

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestFolderIsAFifo: a user who puts a fifo in the place of the folder for rings does not have the agent wait for ever.
func TestFolderIsAFifo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "heapcam-61001")
	if err := syscall.Mkfifo(dir, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { _, err := Scan(dir); done <- err }()
	select {
	case err := <-done:
		if err == nil {
			t.Error("a fifo is no folder")
		}
	case <-time.After(10 * time.Second):
		t.Error("it blocks")
	}
}
