package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// lossy makes a recording of five collections, after which seven were lost. counters is what its recorder kept.
func lossy(t *testing.T, counters string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "r")
	s, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 4 << 20},
		ringstore.Identity{Session: strings.Repeat("0", 32), Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	var frame []byte
	m := tracetest.New(tracetest.Config{Seed: 1})
	for i := range 5 {
		for _, b := range m.Step(i == 0).Blocks {
			frame = trace.AppendBlock(frame, b)
		}
	}
	frame = trace.AppendBlock(frame, trace.EncodeGap(trace.Gap{Reason: trace.GapOverflow, Epochs: 7}))
	frame = trace.AppendBlock(frame, trace.EncodeEnd(trace.End{Reason: trace.EndDeath}))
	if err := s.Rotate(frame, ringstore.FrameInfo{Source: 1, FirstGC: 1, LastGC: 5, T0: 1, T1: 1}); err != nil {
		t.Fatal(err)
	}
	if counters != "" {
		if err := s.KeepCounters([]byte(counters)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestVerifyLostAtEnd: collections that were lost after the newest stored one are in verify's figure and verdict.
func TestVerifyLostAtEnd(t *testing.T) {
	dir := lossy(t, "")
	rec, err := openRecording(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	v, err := verifyFiles("r", rec.Files)
	if err != nil || v.Lost != 7 || !strings.Contains(string(v.lost()), "7 collections are lost") {
		t.Errorf("%v, %d lost: %s", err, v.Lost, v.lost())
	}
}

// TestStatusLost: without an agent, status has the figure that the recorder kept, and says where none is known.
func TestStatusLost(t *testing.T) {
	for counters, want := range map[string]string{
		"":                                     "?",
		`{"collections": 5, "ring_epochs": 7}`: "7",
		`{"collections": 4}`:                   "?", // the recorder was killed before it kept more
	} {
		s, ok := onDisk(lossy(t, counters))
		if !ok {
			t.Fatal("no recording")
		}
		var said strings.Builder
		old := ui.Stdout
		ui.Stdout = &said
		(&statusOptions{}).recordings([]session.Status{s})
		ui.Stdout = old
		row := strings.Fields(strings.Split(said.String(), "\n")[1])
		if s.Collections != s.LastGC && want != "?" || !slices.Contains(row[6:], want) {
			t.Errorf("%s: %+v: %q", counters, s.Dropped, row)
		}
	}
}
