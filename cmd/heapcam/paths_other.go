//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/heapcam/heapcam/agent/place"
	"github.com/heapcam/heapcam/internal/ui"
)

// Where things are on this system.
const (
	systemConfig = "/etc/heapcam/heapcam.yaml" // read by the agent if it is there
	systemOut    = "/var/lib/heapcam"          // recordings of root's agent
	systemSocket = "/run/heapcam/agent.sock"   // of root's agent
	hostSwitch   = "/etc/heapcam/disabled"     // while it is there nothing is recorded on this host
	defaultRings = "/dev/shm"                  // where the folder for shared rings is made: memory

	// optionSeparators part the probe's options.
	optionSeparators = ",:"
)

// toolOption gives the option that has a JVM load the probe, which makes its ring where the agent looks for it.
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

// socketFolder makes the folder of the agent's socket. Users may ask the host's agent about their own JVMs: who calls
// is looked at there.
func socketFolder(sock string) error {
	mode := os.FileMode(0o700)
	if privileged() {
		mode = 0o755
	}
	return os.MkdirAll(filepath.Dir(sock), mode)
}

// ringFolder is the name of this user's folder for shared rings.
func ringFolder() string { return "heapcam-" + strconv.Itoa(os.Getuid()) }

// privileged says that the agent serves the whole host.
func privileged() bool { return os.Getuid() == 0 }
