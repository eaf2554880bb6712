package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

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

var errNoRecording = errors.New("heapcam can not load its probe into a JVM on Windows: give the JVM the option that `heapcam doctor --java-tool-options` prints")

// probeForOptions gives the path of the library that the archives hold beside the program. No real JVM has shown it yet, so it is not inside.
func probeForOptions() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	lib := filepath.Join(filepath.Dir(exe), "heapcam.dll")
	if st, err := os.Stat(lib); err != nil || !st.Mode().IsRegular() {
		return "", withCode(exitNoRecord, "%s is not there: JVMs load the probe from it", lib)
	}
	return lib, nil
}

// toolOption gives the option that has a JVM load the probe. It names the folder for the ring, since the JVM's user may have another one for
// temporary files than the agent's.
func (o *agentOptions) toolOption() (string, error) {
	lib, err := probeForOptions()
	if err != nil {
		return "", err
	}
	option := "-agentpath:" + lib + "=" + o.rec.probeOptions(filepath.Join(o.shmDir, ringFolder()))
	if strings.ContainsRune(option, ' ') { // the JVM parts the variable at blanks outside of quotes
		option = `"` + option + `"`
	}
	return option, nil
}

// installProbe has no way to load what it would install.
func installProbe() (string, error)           { return "", errNoRecording }
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
