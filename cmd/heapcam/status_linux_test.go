package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/faultfs"
)

// TestStatusHangingDisk: status ends in time, and says so, when the folder for recordings lies on a disk that does
// not answer.
func TestStatusHangingDisk(t *testing.T) {
	t.Parallel()
	m := faultfs.New(t)
	dir := filepath.Join(m.Dir, "Shop-7-x")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "00000001.hcr"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	m.Fail(func(op faultfs.Op, path string) syscall.Errno {
		if op == faultfs.Open {
			<-hang
		}
		return 0
	})
	o := statusOptions{out: m.Dir, socket: filepath.Join(t.TempDir(), "no.sock")}
	if err := o.once(context.Background()); err == nil || !strings.Contains(err.Error(), "no agent listens") {
		t.Fatal(err)
	}
	o.socket = ""
	t0 := time.Now()
	err := o.once(context.Background())
	if err == nil || !strings.Contains(err.Error(), "the disk has not answered for 5 s: recordings in "+m.Dir) ||
		exitCode(err) != exitFailed {
		t.Errorf("%v, after %v", err, time.Since(t0))
	}
}
