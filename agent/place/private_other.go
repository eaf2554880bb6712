//go:build !unix && !windows

package place

// PrivateDir is for systems with users.
func PrivateDir() (string, error) { return "", errNoRecording }

// OwnFolder is for systems with users.
func OwnFolder(string, int) error { return errNoRecording }
