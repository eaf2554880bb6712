//go:build unix

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// madeRing writes a ring of blocks.
func madeRing(t *testing.T, blocks []trace.Block) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ring")
	s, _, err := ringstore.Open(ringstore.Config{Dir: dir},
		ringstore.Identity{Session: strings.Repeat("0", 32), Name: "made", VM: "vm", Probe: "p"})
	if err != nil {
		t.Fatal(err)
	}
	var frame []byte
	for _, b := range blocks {
		frame = trace.AppendBlock(frame, b)
	}
	if err := s.Rotate(frame, ringstore.FrameInfo{Source: 1, FirstGC: 1, LastGC: 24, T0: 1, T1: 2}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestReportAdvises: report names a heap that would halve the time in collections, also when it finds the answer in the
// index. It names none where the model does not fit: of G1, and of a heap that changes its size all the time.
func TestReportAdvises(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	odd := tracetest.New(tracetest.Config{Seed: 1, Collector: trace.CollectorParallel, Depth: trace.DepthFull})
	var uneven []trace.Block
	for i := range 24 {
		uneven = append(uneven, odd.Step(i%10 == 0).Blocks...)
	}
	for _, x := range []struct {
		name   string
		blocks []trace.Block
		want   bool
	}{
		{"fits", analysistest.Program(0, trace.CollectorParallel, 24), true},
		{"G1", analysistest.Recording(1, trace.CollectorG1, trace.DepthFull, 24), false},
		{"collected before eden was full", append(uneven, odd.End()), false},
	} {
		dir := madeRing(t, x.blocks)
		for range 2 {
			out, code := heapcam("report", "--json", dir)
			var rep analysis.Report
			at := max(0, strings.Index(out, "{")) // after what is said on the standard error
			if err := json.Unmarshal([]byte(out[at:]), &rep); err != nil || code != 0 {
				t.Fatalf("%s: %d, %v: %s", x.name, code, err, out)
			}
			if got := rep.Advice != nil; got != x.want {
				t.Fatalf("%s: advice %v: %s", x.name, got, out)
			}
			if !x.want {
				continue
			}
			if a := rep.Advice; a.After.High > a.Before/2 || !strings.Contains(a.Flags, "-XX:+UseParallelGC") {
				t.Errorf("%+v", a)
			}
		}
		out, _ := heapcam("report", dir)
		if got := strings.Contains(out, "would halve the time in collections"); got != x.want {
			t.Errorf("%s: a line of advice %v: %s", x.name, got, out)
		}
	}
}
