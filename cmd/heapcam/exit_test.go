package main

import (
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/drag"
	"github.com/heapcam/heapcam/analysis/lifetimes"
	"github.com/heapcam/heapcam/analysis/whatif"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/svc"
)

// TestExitCode: typed errors of packages become the codes that the documentation says, also below other words.
func TestExitCode(t *testing.T) {
	for err, want := range map[error]int{
		svc.ErrRights: exitDenied, svc.ErrNotInstalled: exitNotFound, svc.ErrUnsupported: exitNotFound,
		svc.ErrInstalled: exitUsage, &svc.PackagedError{}: exitUsage, &svc.PlaceError{}: exitUsage,
		collection.NotThere("collection 7"): exitNotFound, ringstore.ErrIncidentRoom: exitNoRoom,
		ringstore.ErrNoRoom: exitNoRoom, session.ErrNoMemory: exitNoRoom, syscall.ENOSPC: exitNoRoom,
		&whatif.FactorError{}: exitUsage, &whatif.SizeError{}: exitUsage, whatif.ErrNoConfig: exitUsage,
		whatif.ErrG1:           exitUsage,
		lifetimes.ErrNoObjects: exitUnclear, lifetimes.ErrNoCollections: exitUnclear,
		drag.ErrNoUses:      exitUnclear,
		whatif.ErrCollector: exitUnclear, whatif.ErrImplausible: exitDamaged,
		noAgent("/run/heapcam.sock", fs.ErrPermission): exitDenied,
		noAgent("/run/heapcam.sock", fs.ErrNotExist):   exitNotFound,
	} {
		if got := exitCode(fmt.Errorf("words: %w", err)); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}
