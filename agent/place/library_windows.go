package place

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/heapcam/heapcam/agent/jvms"
)

var errNoRecording = errors.New("on Windows heapcam cannot attach to a running JVM: " +
	"start the JVM with the option that `heapcam doctor --java-tool-options` prints")

// ProbeForOptions gives the path of the library that the archives hold beside the program. No real JVM has shown it
// yet, so it is not inside. Errors: *jvms.RecordError.
func ProbeForOptions() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	lib := filepath.Join(filepath.Dir(exe), "heapcam.dll")
	if st, err := os.Stat(lib); err != nil || !st.Mode().IsRegular() {
		return "", jvms.Errorf(jvms.Unrecordable, "%s, from which JVMs load the probe, does not exist", lib)
	}
	return lib, nil
}

// InstallProbe has no way to load what it would install.
func InstallProbe() (string, error) { return "", errNoRecording }

// PrivateDir gives a folder below this user's own one for data, which others cannot write to.
func PrivateDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, "heapcam")
	return dir, os.MkdirAll(dir, 0o700)
}

// OwnFolder makes dir; who may write there is what its parent hands down.
func OwnFolder(dir string, _ int) error { return os.MkdirAll(dir, 0o700) }
