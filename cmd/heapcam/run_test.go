package main

import (
	"strings"
	"testing"

	"github.com/heapcam/heapcam/agent/session"
)

func TestToolOptions(t *testing.T) {
	got := withToolOptions([]string{"A=1", "JAVA_TOOL_OPTIONS=-Da=b", "B=2"}, "-agentpath:x")
	if len(got) != 3 || got[2] != "JAVA_TOOL_OPTIONS=-Da=b -agentpath:x" {
		t.Errorf("%q", got)
	}
	if got := withToolOptions(nil, "-x"); len(got) != 1 || got[0] != "JAVA_TOOL_OPTIONS=-x" {
		t.Errorf("%q", got)
	}
}

// TestSummaryOfRemoved: the summary does not claim ring files that are no longer there.
func TestSummaryOfRemoved(t *testing.T) {
	s := session.Status{Name: "A", PID: 1, Phase: session.EndedPhase, Dir: "dd/A-1-2", Collections: 66}
	if got := string(summary(s)); !strings.Contains(got, "none is on the disk") || strings.Contains(got, "0 files") {
		t.Error(got)
	}
}
