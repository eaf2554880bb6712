package export

import "testing"

// TestStackID: a stack has one id, and another stack another one.
func TestStackID(t *testing.T) {
	if a := stackID("A.a(A.java:1)"); len(a) != 16 || a != stackID("A.a(A.java:1)") || a == stackID("A.a(A.java:2)") {
		t.Error(a)
	}
}
