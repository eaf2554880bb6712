package main

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/api"
)

// TestReferencesOfAStoppedJVM: what takes too long is said to be slow, in words for who has never seen the agent.
func TestReferencesOfAStoppedJVM(t *testing.T) {
	path := filepath.Join(t.TempDir(), "silent.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // nobody accepts
	cl, err := api.Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err = askReferences(ctx, cl, "shop", time.Second); err == nil ||
		!strings.HasPrefix(err.Error(), "the JVM did not list its references in time") {
		t.Errorf("%v", err)
	}
}
