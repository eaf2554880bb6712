package ringstore

import (
	"errors"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/ringstore/folder"
)

// TestSyncTellsOfTheOneBefore: an fsync that failed beside the store is an error of the Sync that waited for it. The
// system gives such an error once: another fsync of the same file would succeed, though its pages may be lost.
func TestSyncTellsOfTheOneBefore(t *testing.T) {
	id := folder.Identity{Session: strings.Repeat("ab", 16)}
	s, _, err := Open(Config{Dir: t.TempDir(), MaxTraceSize: 4 << 20}, id)
	if err != nil {
		t.Fatal(err)
	}
	lost := errors.New("input/output error")
	s.syncer.running = make(chan error, 1)
	s.syncer.running <- lost
	if err := s.Sync(); !errors.Is(err, lost) {
		t.Errorf("Sync: %v", err)
	}
	if err := errors.Join(s.Sync(), s.Close()); err != nil {
		t.Errorf("the error is given twice: %v", err)
	}
}
