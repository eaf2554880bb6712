package main

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// Where things are on Windows.
var (
	systemConfig = filepath.Join(systemOut, "heapcam.yaml")
	systemOut    = filepath.Join(programData(), "heapcam")
	hostSwitch   = filepath.Join(systemOut, "disabled")
	defaultRings = os.TempDir()
)

const (
	systemSocket = `\\.\pipe\heapcam-agent`

	// optionSeparators part the probe's options: a colon stands in every path here.
	optionSeparators = ","
)

func programData() string {
	if d := os.Getenv("ProgramData"); d != "" {
		return d
	}
	return `C:\ProgramData`
}

// socketFolder has nothing to make: pipes have a space of names of their own.
func socketFolder(string) error { return nil }

// ringFolder is the name of this user's folder for shared rings; the parent is the user's own.
func ringFolder() string { return "heapcam-rings" }

// privileged says that the agent serves the whole host: an administrator's, or the service.
func privileged() bool { return windows.GetCurrentProcessToken().IsElevated() }

var errNoRecording = errors.New("heapcam can not load its probe into a JVM on Windows: give the JVM the option that `heapcam agent` prints")

// installProbe has no library to install: none of this platform is proven, so none is inside.
func installProbe() (string, error)           { return "", errNoRecording }
func probeForOptions() (string, error)        { return "", errNoRecording }
func installLibrary([]byte) (string, error)   { return "", errNoRecording }
func makeRingDir(string, int) (string, error) { return "", errNoRecording }

// privateDir gives a folder below this user's own one for data, which others can not write to.
func privateDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, "heapcam")
	return dir, os.MkdirAll(dir, 0o700)
}

// ownDir makes dir; who may write there is what its parent hands down.
func ownDir(dir string, _ int) error { return os.MkdirAll(dir, 0o700) }
