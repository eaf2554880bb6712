// Package svc runs heapcam as a service: it installs the agent into the host's service manager, and notifies the
// manager of the agent's state.
//
// Terms: the *unit* is the text that systemd reads, one for `heapcam service install` and for the packages (Unit;
// heapcam.service beside this file). *Packaged* is a unit that a package brought: only the package manager changes or
// removes that. *Feeding* is notifying the watchdog that the agent lives. The *store* is systemd's for file
// descriptors: it keeps them after the end of the agent and passes them to the next one.
//
// Invariants: the watchdog is fed from one goroutine and only after the agent has answered, so that a hang of either
// restarts it. An agent without a service manager runs the same; a failing notification or log never ends it.
// Uninstalling stops the service first, and keeps recordings unless it is to purge them.
//
// It does not know what an agent does: see Alive. Only systemd and the control manager of Windows are supported;
// elsewhere all but Notify and Run fails with ErrUnsupported.
package svc

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
)

// Name is the service's in every manager; the other names are part of what users type and see.
const (
	Name        = "heapcam"
	displayName = "heapcam"
	description = "heapcam, a dashcam for the JVM heap"
	unitName    = Name + ".service"

	// packagedExe is the path of the binary in the packages, as the unit has it.
	packagedExe = "/usr/bin/heapcam"
)

// Errors of the verbs; *PackagedError and *PlaceError too.
var (
	ErrUnsupported = errors.New("no service manager that heapcam knows runs here: it knows systemd " +
		"and the control manager of Windows; `heapcam agent` runs below any other")
	ErrRights       = errors.New("not permitted: only root may do that to a service")
	ErrInstalled    = errors.New("the service is installed already")
	ErrNotInstalled = errors.New("the service is not installed: `heapcam service install`")
)

// PackagedError says that a package brought the unit at Path.
type PackagedError struct{ Path string }

func (e *PackagedError) Error() string {
	return fmt.Sprintf("%s belongs to a package: install and remove heapcam by the package manager", e.Path)
}

// PlaceError says why a service cannot execute the binary at Path.
type PlaceError struct{ Path, Why string }

func (e *PlaceError) Error() string {
	return fmt.Sprintf("the service cannot run %s: %s; copy it to /usr/local/bin/heapcam and install from there",
		e.Path, e.Why)
}

// State is what a service manager says.
type State struct {
	// Installed and Running; a service that is about to start or to stop counts as running.
	Installed bool `json:"installed"`
	Running   bool `json:"running"`
	// Detail is the manager's own word: active, failed, activating, …
	Detail string `json:"detail"`
	// PID of the agent, 0 when it does not run. Restarts by the manager since it was started by hand. Text is the
	// agent's last notification.
	PID      int    `json:"pid,omitempty"`
	Restarts int    `json:"restarts,omitempty"`
	Text     string `json:"text,omitempty"`
	// Packaged: a package brought the unit. Enabled: it starts with the host.
	Packaged bool   `json:"packaged,omitempty"`
	Enabled  bool   `json:"enabled"`
	Unit     string `json:"unit,omitempty"` // path
}

//go:embed heapcam.service
var unit string

// Unit gives the unit for a binary at exe, an absolute path.
func Unit(exe string) string { return strings.ReplaceAll(unit, packagedExe, exe) }

// template is the unit in the form that kardianos/service renders: it escapes the path as systemd wants it.
func template() string {
	return strings.ReplaceAll(unit, "="+packagedExe, "={{Path | cmdEscape}}")
}
