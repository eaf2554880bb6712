package svc

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseShow(t *testing.T) {
	s := parseShow("LoadState=loaded\nActiveState=active\nSubState=running\nMainPID=17\nNRestarts=2\n" +
		"StatusText=records 3 JVMs = all\nUnitFileState=enabled\nFragmentPath=/lib/systemd/system/heapcam.service\n")
	want := State{Installed: true, Running: true, Detail: "active (running)", PID: 17, Restarts: 2,
		Text: "records 3 JVMs = all", Packaged: true, Enabled: true,
		Unit: "/lib/systemd/system/heapcam.service"}
	if s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
	for out, running := range map[string]bool{
		"LoadState=not-found\nActiveState=inactive\nSubState=dead\n":            false,
		"LoadState=loaded\nActiveState=failed\nSubState=failed\n":               false,
		"LoadState=loaded\nActiveState=activating\nSubState=auto-restart\n":     true,
		"LoadState=loaded\nActiveState=reloading\nSubState=reload\nMainPID=x\n": true,
		"": false, "=": false, "nonsense": false,
	} {
		if s := parseShow(out); s.Running != running || s.Installed != strings.Contains(out, "=loaded") {
			t.Errorf("%q: %+v", out, s)
		}
	}
}

// place makes a host of our own below a temporary folder.
func place(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not run: refusals of `service install` (not root)")
	}
	dir := t.TempDir()
	own, pkg, b := ownUnit, packageUnits, booted
	t.Cleanup(func() { ownUnit, packageUnits, booted = own, pkg, b })
	ownUnit, booted = filepath.Join(dir, "own.service"), dir
	packageUnits = []string{filepath.Join(dir, "packaged.service")}
	return dir
}

func TestRefusals(t *testing.T) {
	place(t)
	for _, f := range []func() error{Start, Stop, Restart, func() error { return Uninstall(true) }} {
		if err := f(); !errors.Is(err, ErrNotInstalled) {
			t.Errorf("not installed: %v", err)
		}
	}
	os.WriteFile(ownUnit, nil, 0o644)
	if err := Install(); !errors.Is(err, ErrInstalled) {
		t.Errorf("installed twice: %v", err)
	}
	os.WriteFile(packageUnits[0], nil, 0o644)
	for _, f := range []func() error{Install, func() error { return Uninstall(false) }} {
		var p *PackagedError
		if err := f(); !errors.As(err, &p) || p.Path != packageUnits[0] {
			t.Errorf("packaged: %v", err)
		}
	}
	booted = filepath.Join(booted, "nothing")
	uninstall := func() error { return Uninstall(false) }
	query := func() error { _, err := Query(); return err }
	for _, f := range []func() error{Install, Start, Stop, Restart, uninstall, query} {
		if err := f(); !errors.Is(err, ErrUnsupported) {
			t.Errorf("no systemd: %v", err)
		}
	}
}

func TestRunnable(t *testing.T) {
	dir := place(t)
	exe := filepath.Join(dir, "heapcam")
	if err := os.WriteFile(exe, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := runnable(exe); err != nil {
		t.Errorf("root's own: %v", err)
	}
	var p *PlaceError
	if err := runnable("/home/me/heapcam"); !errors.As(err, &p) {
		t.Errorf("in /home: %v", err)
	}
	os.Chmod(dir, 0o777)
	if err := runnable(exe); !errors.As(err, &p) || !strings.Contains(err.Error(), dir) {
		t.Errorf("in a folder that all can write to: %v", err)
	}
	os.Chmod(dir, 0o755)
	os.Chown(exe, 65534, 65534)
	if err := runnable(exe); !errors.As(err, &p) {
		t.Errorf("somebody else's: %v", err)
	}
}

// TestSystemdIsNotified speaks to a socket as systemd would give it.
func TestSystemdIsNotified(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "30000000")
	t.Setenv("WATCHDOG_PID", "")
	os.Unsetenv("WATCHDOG_PID")
	n, ok := systemd()
	if !ok || n.watchdog.Seconds() != 30 {
		t.Fatalf("%v %+v", ok, n)
	}
	read := func() string {
		b := make([]byte, 4096)
		k, err := l.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:k])
	}
	done := Reloading()
	if s := read(); !strings.HasPrefix(s, "RELOADING=1\nMONOTONIC_USEC=") {
		t.Errorf("%q", s)
	}
	done()
	if s := read(); s != "READY=1\n" {
		t.Errorf("%q", s)
	}
}
