// Package svc runs heapcam as a service. It installs the agent into the host's service manager, and reports the agent's
// state to the manager.
//
// Terms: the *unit* is the text that systemd reads. `heapcam service install` and the packages use the same text (Unit;
// heapcam.service beside this file). A *packaged* unit belongs to a package: only the package manager changes or
// removes it. *Feeding* the watchdog is the report that the agent works. The *store* is systemd's store of file
// descriptors: systemd keeps them when the agent ends and gives them to the next one.
//
// Invariants: one goroutine feeds the watchdog, and only after the agent has answered, so a hang of either causes a
// restart. An agent without a service manager runs the same way. A failing notification or log never ends it.
// Uninstalling stops the service first, and keeps recordings unless it is asked to purge.
//
// The package does not know what an agent does: see Alive. It supports systemd and the control manager of Windows.
// Elsewhere all functions except Notify and Run fail with ErrUnsupported.
package svc

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
)

// Name is the name of the service in every manager. Users type and see the other names.
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
	ErrUnsupported = errors.New("this host has neither systemd nor the control manager of Windows; start " +
		"`heapcam agent` with your own service manager")
	ErrRights       = errors.New("not permitted: only root (on Windows an administrator) may change a service")
	ErrInstalled    = errors.New("the service is already installed; `heapcam service uninstall` removes it")
	ErrNotInstalled = errors.New("the service is not installed; `heapcam service install` installs it")
)

// PackagedError says that the unit at Path belongs to a package.
type PackagedError struct{ Path string }

func (e *PackagedError) Error() string {
	return fmt.Sprintf("%s belongs to a package; use the package manager to install or remove heapcam", e.Path)
}

// PlaceError says why a service cannot execute the binary at Path.
type PlaceError struct{ Path, Why string }

func (e *PlaceError) Error() string {
	return fmt.Sprintf("the service cannot run %s: %s; copy it to /usr/local/bin/heapcam and install from there",
		e.Path, e.Why)
}

// State is the state of the service, as its manager reports it.
type State struct {
	Installed bool   `json:"installed"`          // The service is installed.
	Running   bool   `json:"running"`            // The service runs, starts or stops.
	Detail    string `json:"detail"`             // State in the manager's words: active, failed, activating, …
	PID       int    `json:"pid,omitempty"`      // Process id of the agent.
	Restarts  int    `json:"restarts,omitempty"` // Restarts by the manager since the service was last started by hand.
	Text      string `json:"text,omitempty"`     // What the agent last reported.
	Packaged  bool   `json:"packaged,omitempty"` // A package installed the service.
	Enabled   bool   `json:"enabled"`            // The service starts with the host.
	Unit      string `json:"unit,omitempty"`     // Path of the systemd unit.
}

//go:embed heapcam.service
var unit string

// Unit gives the unit for a binary at exe, an absolute path.
func Unit(exe string) string { return strings.ReplaceAll(unit, packagedExe, exe) }

// template is the unit in the form that kardianos/service renders: it escapes the path as systemd wants it.
func template() string {
	return strings.ReplaceAll(unit, "="+packagedExe, "={{Path | cmdEscape}}")
}
