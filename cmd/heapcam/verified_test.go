package main

import (
	"strings"
	"testing"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// TestVerifiedSamples: a recording at depth samples has no heap state, and lacks nothing.
func TestVerifiedSamples(t *testing.T) {
	for depth, want := range map[uint64]ui.Style{trace.DepthSamples: ui.Good, trace.DepthSurvivors: ui.Doubt} {
		var v verified
		for gc := uint64(1); gc < 4; gc++ {
			v.collection(&heap.Collection{Pause: trace.Pause{GC: gc, Depth: depth}}, 0, 1)
		}
		out := verifyReply{Files: []verified{v}}
		style, text := out.verdict()
		if style != want || strings.Contains(string(text), "missing") == (want == ui.Good) {
			t.Errorf("depth %d: %s", depth, text)
		}
	}
}
