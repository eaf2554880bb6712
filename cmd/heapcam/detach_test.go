package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/heapcam/heapcam/agent/session"
)

// TestPickRunning: a verb that asks the agent finds a JVM by the same words as the verbs that read its recording.
func TestPickRunning(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	of := func(out, id, name string, phase session.Phase) session.Status {
		dir := filepath.Join(out, id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return session.Status{ID: id, Name: name, Dir: dir, Phase: phase}
	}
	all := []session.Status{of(here, "Shop-1-a", "Shop", session.Recording), of(there, "Shop-2-b", "Shop",
		session.Paused), of(there, "Shop-3-c", "Shop", session.EndedPhase), of(here, "Till-4-d", "Till",
		session.Recording)}
	for ref, want := range map[string]string{
		"Till": "Till-4-d", filepath.Join(here, "Shop"): "Shop-1-a", filepath.Join(there, "Shop"): "Shop-2-b",
		filepath.Join(here, "Till-4-d") + "/": "Till-4-d", "Shop": "", filepath.Join(there, "Till"): "",
		filepath.Join(there, "Shop-3-c"): "", "nowhere/Shop": "",
	} {
		s, err := pickRunning(all, ref)
		if s.ID != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", ref, s.ID, err)
		}
	}
}
