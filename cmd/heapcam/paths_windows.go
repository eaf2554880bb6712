package main

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"

	"github.com/heapcam/heapcam/agent/place"
)

// Paths on Windows.
var (
	systemConfig = filepath.Join(systemOut, "heapcam.yaml")
	systemOut    = filepath.Join(programData(), "heapcam")
	hostSwitch   = filepath.Join(systemOut, "disabled")
	defaultRings = os.TempDir()
)

const (
	systemSocket = `\\.\pipe\heapcam-agent`

	// optionSeparators separate the probe's options. A colon is part of every path on Windows.
	optionSeparators = ","
)

func programData() string {
	if d := os.Getenv("ProgramData"); d != "" {
		return d
	}
	return `C:\ProgramData`
}

// socketFolder creates nothing: pipes have a namespace of their own.
func socketFolder(string) error { return nil }

// ringFolder is the name of this user's folder for shared rings; the parent is the user's own.
func ringFolder() string { return "heapcam-rings" }

// spareRings is another folder for shared rings; "": there is none.
func spareRings() string { return "" }

// privileged says whether the agent serves the whole host: an administrator's, or the service.
func privileged() bool { return windows.GetCurrentProcessToken().IsElevated() }

// toolOption gives the option with which a JVM loads the probe. It names the folder for the ring, because the JVM's
// user may have another folder for temporary files than the agent's user.
func (o *agentOptions) toolOption() (string, error) {
	lib, err := place.ProbeForOptions()
	if err != nil {
		return "", err
	}
	option := "-agentpath:" + lib + "=" + o.rec.probeOptions(filepath.Join(o.shmDir, ringFolder()))
	if strings.ContainsRune(option, ' ') { // the JVM splits the variable at blanks outside of quotes
		option = `"` + option + `"`
	}
	return option, nil
}
