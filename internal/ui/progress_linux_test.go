package ui

import (
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestProgressSteps: on a terminal the steps of what takes longer than a second are on one line, which is removed.
func TestProgressSteps(t *testing.T) {
	host, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("not run: there is no terminal: %v", err)
	}
	defer host.Close()
	if err := unix.IoctlSetPointerInt(int(host.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skipf("not run: there is no terminal: %v", err)
	}
	n, err := unix.IoctlGetInt(int(host.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("not run: there is no terminal: %v", err)
	}
	defer terminal.Close()
	was := os.Stderr
	os.Stderr = terminal
	p := NewProgress("reading")
	p.Step("too soon")
	p.start = p.start.Add(-2 * time.Second)
	p.Step("one")
	p.Step("two")
	p.Done()
	ClearProgress()
	os.Stderr = was
	b := make([]byte, 1000)
	const want = "\r\x1b[Kheapcam: reading: one \r\x1b[Kheapcam: reading: two \r\x1b[K\r\x1b[K"
	k, err := io.ReadAtLeast(host, b, len(want))
	if err != nil || string(b[:k]) != want {
		t.Errorf("%q %v", b[:k], err)
	}
}
