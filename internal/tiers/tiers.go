// Package tiers says which tests run when: `make test` runs the short ones, `.ci/run` (HEAPCAM_GATE) also those that
// take some ten seconds, and `make test-full` (HEAPCAM_FULL) all in full length.
package tiers

import (
	"os"
	"slices"
	"testing"
)

// Full says that this is `make test-full`.
func Full() bool { return os.Getenv("HEAPCAM_FULL") != "" }

// more are what else asks for tests by name: other JDKs, the loader of one, arm64, a longer span.
var more = []string{"HEAPCAM_GATE", "HEAPCAM_JDKS", "HEAPCAM_LOADER", "HEAPCAM_ARM64_ROOT", "HEAPCAM_UNLOAD_FOR"}

// Short says that this is `make test`.
func Short() bool {
	return !Full() && !slices.ContainsFunc(more, func(key string) bool { return os.Getenv(key) != "" })
}

// Gate skips a test that `make test` leaves out; what names it.
func Gate(t testing.TB, what string) {
	t.Helper()
	if Short() {
		t.Skipf("not run: %s (HEAPCAM_GATE=1, as .ci/run sets it)", what)
	}
}
