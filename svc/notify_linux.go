package svc

import (
	"fmt"
	"os"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// systemd gives the manager that started this process, if it accepts reports.
func systemd() (*notifier, bool) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return nil, false
	}
	wd, err := daemon.SdWatchdogEnabled(false)
	if err != nil { // as if there were no watchdog
		wd = 0
	}
	return &notifier{send: func(s string) { _, _ = daemon.SdNotify(false, s) }, watchdog: wd}, true
}

// monotonic is when a reload began. By it systemd distinguishes several reloads.
func monotonic() string {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return ""
	}
	return fmt.Sprintf("MONOTONIC_USEC=%d\n", t.Nano()/1000)
}
