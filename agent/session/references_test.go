package session

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestLackedRoom: the reasons that a listing had too little memory are what the probe says, and no others are.
func TestLackedRoom(t *testing.T) {
	source, err := os.ReadFile("../../probe/src/references.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, why := range []string{`"` + lackedRoom + `"`, `"` + lackedMemory + `"`, lackedCgroup} {
		if !strings.Contains(string(source), why) {
			t.Errorf("probe/src/references.c does not say %q", why)
		}
	}
	for why, want := range map[string]bool{lackedRoom: true, lackedMemory: true, "recording is paused": false,
		"it needs 70 MiB of memory, and the cgroup of this JVM has 10 MiB left": true,
		"it is expected to stop the JVM for 700 ms; the limit is 250 ms":        false} {
		if got := errors.Is(&RefusedError{why}, ErrNoMemory); got != want {
			t.Errorf("%s: for lack of memory: %v", why, got)
		}
	}
}
