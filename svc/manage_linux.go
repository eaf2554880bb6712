package svc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/kardianos/service"

	"github.com/heapcam/heapcam/packaging"
)

// Paths; variables only for the tests.
var (
	ownUnit      = "/etc/systemd/system/" + unitName
	packageUnits = []string{"/usr/lib/systemd/system/" + unitName, "/lib/systemd/system/" + unitName}
	booted       = "/run/systemd/system" // sd_booted(3)
	stateDir     = "/var/lib/" + Name
	configFile   = "/etc/" + Name + "/" + Name + ".yaml"
)

// StateDir is what Uninstall removes if it is to purge.
func StateDir() string { return stateDir }

func manager() (service.Service, error) {
	if st, err := os.Stat(booted); err != nil || !st.IsDir() {
		return nil, ErrUnsupported
	}
	return service.New(nil, &service.Config{
		Name: Name, DisplayName: displayName, Description: description, Arguments: []string{"agent"},
		Option: service.KeyValue{"SystemdScript": template(), "Restart": "on-failure"},
	})
}

// change gives the manager, if this user may change services.
func change() (service.Service, error) {
	m, err := manager()
	if err == nil && os.Geteuid() != 0 {
		err = ErrRights
	}
	return m, err
}

func packaged() string {
	for _, p := range packageUnits {
		if _, err := os.Lstat(p); err == nil {
			return p
		}
	}
	return ""
}

// Install installs this binary as a service that starts with the host, with the commented configuration unless there
// is one, and starts it. Errors: ErrUnsupported, ErrRights, ErrInstalled,
// *PackagedError, *PlaceError, what systemctl says.
func Install() error {
	m, err := change()
	if err != nil {
		return err
	}
	if p := packaged(); p != "" {
		return &PackagedError{p}
	}
	if _, err := os.Lstat(ownUnit); err == nil {
		return ErrInstalled
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if exe, err = filepath.EvalSymlinks(exe); err != nil {
		return err
	}
	if err := runnable(exe); err != nil {
		return err
	}
	if err := writeConfig(); err != nil {
		return err
	}
	if err := m.Install(); err != nil {
		os.Remove(ownUnit) // an incomplete unit would count as installed
		return err
	}
	return m.Start()
}

// writeConfig writes the sample configuration, unless a configuration exists.
func writeConfig() error {
	if err := os.MkdirAll(filepath.Dir(configFile), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(configFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.Write(packaging.Config)
	return errors.Join(err, f.Close())
}

// runnable says why the unit could not execute exe, or why another user could replace exe.
func runnable(exe string) error {
	for _, hidden := range []string{"/home/", "/root/", "/run/user/"} { // ProtectHome
		if strings.HasPrefix(exe, hidden) {
			return &PlaceError{exe, "a service cannot see files below " + strings.TrimSuffix(hidden, "/")}
		}
	}
	for p := exe; ; p = filepath.Dir(p) {
		st, err := os.Stat(p)
		if err != nil {
			return err
		}
		open := st.Mode().Perm()&0o022 != 0 && st.Mode()&fs.ModeSticky == 0
		if sys, ok := st.Sys().(*syscall.Stat_t); ok && (sys.Uid != 0 || open) {
			return &PlaceError{exe, "users other than root can change " + p}
		}
		if p == "/" {
			return nil
		}
	}
}

// Uninstall stops and removes the service; with purge also its configuration, and its recordings in StateDir.
// Errors: as Install, ErrNotInstalled.
func Uninstall(purge bool) error {
	m, err := change()
	if err != nil {
		return err
	}
	if p := packaged(); p != "" {
		return &PackagedError{p}
	}
	if _, err := os.Lstat(ownUnit); err != nil {
		return ErrNotInstalled
	}
	if err := m.Stop(); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	if err := m.Uninstall(); err != nil {
		return err
	}
	if !purge {
		return nil
	}
	if err := os.Remove(configFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	os.Remove(filepath.Dir(configFile)) // fails if there are other files
	if st, err := os.Lstat(stateDir); err == nil && !st.IsDir() {
		return fmt.Errorf("cannot remove the recordings: %s is not a folder", stateDir)
	}
	return os.RemoveAll(stateDir)
}

// Start starts the service. Errors: ErrUnsupported, ErrRights, ErrNotInstalled, what systemctl says.
func Start() error { return act(service.Service.Start) }

// Stop stops the service. JVMs run on, and their data waits in the shared rings. Errors: as Start.
func Stop() error { return act(service.Service.Stop) }

// Restart stops and starts it. Errors: as Start.
func Restart() error { return act(service.Service.Restart) }

func act(f func(service.Service) error) error {
	m, err := change()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(ownUnit); err != nil && packaged() == "" {
		return ErrNotInstalled
	}
	return f(m)
}

// Query gives the state of the service. Errors: ErrUnsupported, what systemctl says.
func Query() (State, error) {
	if _, err := manager(); err != nil {
		return State{}, err
	}
	out, err := exec.Command("systemctl", "show", unitName, "-p",
		"LoadState,ActiveState,SubState,MainPID,NRestarts,StatusText,UnitFileState,FragmentPath").Output()
	if err != nil {
		var e *exec.ExitError
		if errors.As(err, &e) && len(e.Stderr) > 0 {
			return State{}, fmt.Errorf("systemctl: %s", strings.TrimSpace(string(e.Stderr)))
		}
		return State{}, fmt.Errorf("systemctl: %w", err)
	}
	return parseShow(string(out)), nil
}

// parseShow reads what `systemctl show` prints.
func parseShow(out string) State {
	v := map[string]string{}
	for line := range strings.Lines(out) {
		if k, val, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
			v[k] = val
		}
	}
	s := State{
		Installed: v["LoadState"] == "loaded", Text: v["StatusText"], Detail: v["ActiveState"], Unit: v["FragmentPath"],
		Enabled: v["UnitFileState"] == "enabled",
	}
	s.Running = s.Detail != "inactive" && s.Detail != "failed" && s.Detail != ""
	if sub := v["SubState"]; sub != "" && sub != "dead" && sub != s.Detail {
		s.Detail += " (" + sub + ")"
	}
	s.PID, _ = strconv.Atoi(v["MainPID"])
	s.Restarts, _ = strconv.Atoi(v["NRestarts"])
	for _, p := range packageUnits {
		s.Packaged = s.Packaged || s.Unit == p
	}
	return s
}
