package main

import (
	"testing"
	"time"
)

func TestSizes(t *testing.T) {
	for in, want := range map[string]int64{"0": 0, "512k": 512 << 10, "16GiB": 16 << 30, "1.5m": 3 << 19, "64 MB": 64 << 20, "7b": 7, "1T": 1 << 40} {
		if got, err := parseSize(in); err != nil || got != want {
			t.Errorf("parseSize(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "k", "-1", "1x", "1e3", "99999999999T", "1..2"} {
		if got, err := parseSize(in); err == nil {
			t.Errorf("parseSize(%q) = %d, want an error", in, got)
		}
	}
}

func TestLast(t *testing.T) {
	var l last
	if err := l.Set("15m"); err != nil || l.dur != 15*time.Minute {
		t.Errorf("15m: %v %v", l, err)
	}
	if err := l.Set("15MiB"); err != nil || l.bytes != 15<<20 || l.dur != 0 {
		t.Errorf("15MiB: %v %v", l, err)
	}
	if err := l.Set("soon"); err == nil {
		t.Error("soon is no duration")
	}
}

func TestToolOptions(t *testing.T) {
	got := withToolOptions([]string{"A=1", "JAVA_TOOL_OPTIONS=-Da=b", "B=2"}, "-agentpath:x")
	if len(got) != 3 || got[2] != "JAVA_TOOL_OPTIONS=-Da=b -agentpath:x" {
		t.Errorf("%q", got)
	}
	if got := withToolOptions(nil, "-x"); len(got) != 1 || got[0] != "JAVA_TOOL_OPTIONS=-x" {
		t.Errorf("%q", got)
	}
}
