//go:build !linux && !windows

package svc

// StateDir is empty: nothing is installed here.
func StateDir() string { return "" }

// Install fails here with ErrUnsupported, as all that follow.
func Install() error        { return ErrUnsupported }
func Uninstall(bool) error  { return ErrUnsupported }
func Start() error          { return ErrUnsupported }
func Stop() error           { return ErrUnsupported }
func Restart() error        { return ErrUnsupported }
func Query() (State, error) { return State{}, ErrUnsupported }
