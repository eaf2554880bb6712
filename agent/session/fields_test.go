package session

import (
	"reflect"
	"testing"
)

// TestSessionIsParts: a session is few parts, each a type with its own tests. A field more belongs to one of them.
func TestSessionIsParts(t *testing.T) {
	if n := reflect.TypeFor[Session]().NumField(); n > 15 {
		t.Errorf("a Session has %d fields, at most 15", n)
	}
}
