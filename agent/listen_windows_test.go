package agent

import (
	"crypto/rand"
	"testing"
)

func localSocket(t *testing.T) (path string, check func()) {
	return `\\.\pipe\heapcam-test-` + rand.Text(), func() {}
}
