//go:build unix

package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/internal/ui"
)

func passedSignals() []os.Signal {
	return []os.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	}
}

// passSignal passes a signal to the command. A terminal signals the whole foreground group, so the command has got
// those signals already.
func passSignal(p *os.Process, s os.Signal) {
	if (s == syscall.SIGINT || s == syscall.SIGQUIT) && foreground() {
		return
	}
	_ = p.Signal(s)
}

func foreground() bool {
	pg, err := unix.IoctlGetInt(int(ui.RawStdin().Fd()), unix.TIOCGPGRP)
	return err == nil && pg == unix.Getpgrp()
}

// waitStatus gives the exit code that a shell gives: the status, or 128+n after signal n.
func waitStatus(p *os.ProcessState) int {
	if ws, ok := p.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return p.ExitCode()
}
