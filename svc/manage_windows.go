package svc

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/kardianos/service"
	"golang.org/x/sys/windows"
)

// StateDir is what Uninstall removes if it is to purge.
func StateDir() string { return filepath.Join(os.Getenv("ProgramData"), Name) }

func manager() (service.Service, error) {
	return service.New(nil, &service.Config{
		Name: Name, DisplayName: displayName, Description: description,
		Arguments: []string{"agent", "--service", "--out", StateDir()},
		Option: service.KeyValue{ // restart two seconds after a failure; forget failures after a day without one
			service.OnFailure: service.OnFailureRestart, service.OnFailureDelayDuration: "2s",
			service.OnFailureResetPeriod: 86400,
		},
	})
}

// ownError translates errors of the control manager into those of this package.
func ownError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, windows.ERROR_ACCESS_DENIED):
		return ErrRights
	case errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST), errors.Is(err, service.ErrNotInstalled),
		strings.HasSuffix(err.Error(), "is not installed"):
		return ErrNotInstalled
	case strings.HasSuffix(err.Error(), "already exists"):
		return ErrInstalled
	}
	return err
}

func act(f func(service.Service) error) error {
	m, err := manager()
	if err == nil {
		err = f(m)
	}
	return ownError(err)
}

// Install installs this binary as a service that starts with the host, and its source of events, and starts it.
// Errors: ErrRights, ErrInstalled, what the control manager says.
func Install() error {
	return act(func(m service.Service) error {
		if err := m.Install(); err != nil {
			return err
		}
		return m.Start()
	})
}

// Uninstall stops the service and removes it; with purge its recordings too.
func Uninstall(purge bool) error {
	return act(func(m service.Service) error {
		if st, err := m.Status(); err != nil {
			return err
		} else if st == service.StatusRunning {
			if err := m.Stop(); err != nil {
				return err
			}
		}
		if err := m.Uninstall(); err != nil || !purge {
			return err
		}
		return os.RemoveAll(StateDir())
	})
}

// Start starts the service.
func Start() error { return act(service.Service.Start) }

// Stop stops it.
func Stop() error { return act(service.Service.Stop) }

// Restart stops and starts it.
func Restart() error { return act(service.Service.Restart) }

// Query gives the state of the service.
func Query() (s State, err error) {
	m, err := manager()
	if err != nil {
		return s, err
	}
	st, err := m.Status()
	if err = ownError(err); errors.Is(err, ErrNotInstalled) {
		return State{Detail: "not installed"}, nil
	}
	if err != nil {
		return s, err
	}
	s = State{Installed: true, Enabled: true, Running: st == service.StatusRunning, Detail: "stopped"}
	if s.Running {
		s.Detail = "running"
	}
	return s, nil
}
