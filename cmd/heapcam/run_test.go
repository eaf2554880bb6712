package main

import "testing"

func TestToolOptions(t *testing.T) {
	got := withToolOptions([]string{"A=1", "JAVA_TOOL_OPTIONS=-Da=b", "B=2"}, "-agentpath:x")
	if len(got) != 3 || got[2] != "JAVA_TOOL_OPTIONS=-Da=b -agentpath:x" {
		t.Errorf("%q", got)
	}
	if got := withToolOptions(nil, "-x"); len(got) != 1 || got[0] != "JAVA_TOOL_OPTIONS=-x" {
		t.Errorf("%q", got)
	}
}
