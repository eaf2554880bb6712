package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// TestCostTooNew: what a newer heapcam wrote is too new for cost, as for all verbs, and no account with a hole.
func TestCostTooNew(t *testing.T) {
	for name, later := range map[string]uint8{"ours": 0, "newer": 1} {
		dir := filepath.Join(t.TempDir(), "r")
		s, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 4 << 20},
			ringstore.Identity{Session: strings.Repeat("0", 32), Name: "x"})
		if err != nil {
			t.Fatal(err)
		}
		b := trace.EncodeMeta(trace.Meta{Sampling: []trace.Sampling{{Time: 1, NS: 7}}})
		if later > 0 {
			b.Version = trace.FormatVersion + later
		}
		if err := s.Rotate(trace.AppendBlock(nil, b), ringstore.FrameInfo{Source: 1, FirstGC: 1, LastGC: 1, T0: 1,
			T1: 1}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		sum, err := readCost(filepath.Dir(dir), []string{dir})
		if newer := later > 0; tooNew(err) != newer || (sum == nil) != newer {
			t.Errorf("%s: %v, %v", name, sum, err)
		}
	}
}
