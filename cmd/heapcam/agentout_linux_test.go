package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestAgentsFolder: what an agent records into a folder of its own is found without --out by every verb that takes a
// recording or an incident.
func TestAgentsFolder(t *testing.T) {
	dir, err := os.MkdirTemp("", "hc") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Chdir(dir)
	rings := filepath.Join(dir, "rings")
	if err := os.Mkdir(rings, 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := ringtest.Create(rings, ringtest.Config{Starting: true, Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := errors.Join(p.State(shmring.StateRecording, ""), p.Ready()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Commit(tracetest.New(tracetest.Config{Seed: 1}).Step(true).Blocks...); err != nil {
		t.Fatal(err)
	}
	a, _, sock := serveAgent(t, dir, rings)
	t.Setenv("HEAPCAM_SOCKET", sock)
	t.Setenv("HEAPCAM_OUT", filepath.Join(dir, "elsewhere"))
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if st := a.Status(); len(st) == 1 && st[0].Collections > 0 && isRecording(st[0].Dir) {
			break
		} else if time.Now().After(end) {
			t.Fatalf("no recording: %+v", st)
		}
	}
	name := a.Status()[0].ID
	succeed := func(args ...string) []byte {
		t.Helper()
		code := 0
		out, errs := talk(t, func() { code = run(args) })
		if code != 0 {
			t.Errorf("%v: %d: %s", args, code, errs)
		}
		return out
	}
	succeed("report", name)
	succeed("cost", name)
	succeed("cost")
	id := strings.TrimSpace(string(succeed("freeze", name)))
	var list struct{ Incidents []ringstore.Incident }
	if err := json.Unmarshal(succeed("incidents", "--json"), &list); err != nil || len(list.Incidents) != 1 ||
		list.Incidents[0].ID != id {
		t.Errorf("incidents: %v, %+v, want %q", err, list, id)
	}
	succeed("incidents", "show", id)
	succeed("pull", "--incident", id, "-o", "i.heapcam")
	succeed("incidents", "delete", id)
	if _, errs := talk(t, func() { run([]string{"freeze", "--out", "elsewhere", "i.heapcam"}) }); !strings.Contains(
		string(errs), "is not a ring folder") {
		t.Errorf("freeze of a file that is there: %s", errs)
	}
}
