package trace_test

import (
	"strings"
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// TestFullHeap: out of memory is what a full collection says that leaves a full heap, if no other collection follows.
func TestFullHeap(t *testing.T) {
	var f trace.FullHeap
	check := func(want string, last bool) {
		t.Helper()
		if got := f.Cause(100); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if _, is := f.Ended(); is != last {
			t.Errorf("the last collection was a full one: %v", is)
		}
	}
	check("", false)
	f.Pause(trace.PauseYoung, 5, 99)
	check("", false)
	f.Pause(trace.PauseFull, 10, 97)
	f.Pause(trace.PauseWalk, 11, 97)
	check("left the heap 97 % full", true)
	if f.Cause(0) != "" {
		t.Error("a heap of unknown size is full")
	}
	f.Pause(trace.PauseFull, 12, 60)
	check("", true)
	f.Pause(trace.PauseFull, 13, 95)
	f.Pause(trace.PauseYoung, 14, 95)
	check("", false)
}
