package session

import (
	"os"
	"strings"
	"testing"
)

// TestLackedRoom: the reason after which a listing is tried once more is what the probe says.
func TestLackedRoom(t *testing.T) {
	source, err := os.ReadFile("../../probe/src/references.c")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(source), `"`+lackedRoom+`"`) {
		t.Errorf("probe/src/references.c does not say %q", lackedRoom)
	}
}
