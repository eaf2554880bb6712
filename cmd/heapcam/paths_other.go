//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/heapcam/heapcam/agent/place"
	"github.com/heapcam/heapcam/internal/ui"
)

// Paths on this system.
const (
	systemConfig = "/etc/heapcam/heapcam.yaml" // the agent reads it if it exists
	systemOut    = "/var/lib/heapcam"          // recordings of root's agent
	systemSocket = "/run/heapcam/agent.sock"   // of root's agent
	hostSwitch   = "/etc/heapcam/disabled"     // while it exists, heapcam records nothing on this host
	defaultRings = "/dev/shm"                  // folder for the folder of shared rings: memory

	// optionSeparators separate the probe's options.
	optionSeparators = ",:"
)

// toolOption gives the option with which a JVM loads the probe and creates its ring where the agent finds it.
func (o *agentOptions) toolOption() (string, error) {
	lib, err := place.ProbeForOptions()
	if err != nil {
		return "", err
	}
	if lib != place.PackagedProbe {
		ui.Fprintf(ui.Stderr, "heapcam: only JVMs of this user can read %s; JVMs of other users need the library "+
			"of the "+
			"package, %s\n",
			lib, place.PackagedProbe)
	}
	return "-agentpath:" + lib + "=" + o.rec.attachOptions(), nil
}

// socketFolder creates the folder of the agent's socket. Every user can reach the socket of the host's agent, because
// users may ask about their own JVMs. The agent checks each caller.
func socketFolder(sock string) error {
	mode := os.FileMode(0o700)
	if privileged() {
		mode = 0o755
	}
	return os.MkdirAll(filepath.Dir(sock), mode)
}

// ringFolder is the name of this user's folder for shared rings.
func ringFolder() string { return "heapcam-" + strconv.Itoa(os.Getuid()) }

// spareRings is where root's agent has its shared rings if another user has taken the usual name: in a folder that is
// root's alone. "": nowhere.
func spareRings() string {
	if !privileged() {
		return ""
	}
	return filepath.Join(filepath.Dir(systemSocket), "rings")
}

// privileged says whether the agent serves the whole host.
func privileged() bool { return os.Getuid() == 0 }
