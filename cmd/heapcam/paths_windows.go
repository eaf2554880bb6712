package main

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"

	"github.com/heapcam/heapcam/agent/place"
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

// toolOption gives the option that has a JVM load the probe. It names the folder for the ring, since the JVM's user may
// have another one for temporary files than the agent's.
func (o *agentOptions) toolOption() (string, error) {
	lib, err := place.ProbeForOptions()
	if err != nil {
		return "", err
	}
	option := "-agentpath:" + lib + "=" + o.rec.probeOptions(filepath.Join(o.shmDir, ringFolder()))
	if strings.ContainsRune(option, ' ') { // the JVM parts the variable at blanks outside of quotes
		option = `"` + option + `"`
	}
	return option, nil
}
