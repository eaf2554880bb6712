package main

import (
	"testing"

	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// TestEdenText: what a full collection left in eden belongs to the state; what was allocated there does not.
func TestEdenText(t *testing.T) {
	for _, c := range []struct {
		kind, eden uint64
		want       ui.Flow
	}{
		{trace.PauseFull, 9 << 20, "With 9.0 MiB in eden, which the full collection left there."},
		{trace.PauseFull, 0, "Without eden, where the JVM allocates new objects."},
		{trace.PauseRemark, 9 << 20, "Without eden, where the JVM allocates new objects."},
	} {
		p := trace.Pause{Kind: c.kind}
		spaces := []trace.Space{{Kind: trace.SpaceEden, UsedAfter: c.eden}, {Kind: trace.SpaceOld, UsedAfter: 1}}
		if got := edenText(&p, spaces); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestFillerMark: rows of fillers say that these are no objects of the program.
func TestFillerMark(t *testing.T) {
	const mark = " (filler space)"
	for _, c := range []struct {
		keys []string
		want ui.Text
	}{
		{[]string{"byte[]"}, "byte[]"},
		{[]string{"jdk.internal.vm.FillerElement[]"}, "jdk.internal.vm.FillerElement[]" + mark},
		{[]string{"old", "a", "jdk.internal.vm.FillerObject"}, "old / … / jdk.internal.vm.FillerObject" + mark},
	} {
		if got := groupPath(c.keys); got != c.want {
			t.Errorf("%s", got)
		}
	}
}
