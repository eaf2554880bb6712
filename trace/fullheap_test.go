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
	check("an OutOfMemoryError that ended the program", true)
	if f.Cause(0) != "" {
		t.Error("a heap of unknown size is full")
	}
	f.Pause(trace.PauseFull, 12, 60)
	check("", true)
	f.Pause(trace.PauseFull, 13, 95)
	f.Pause(trace.PauseYoung, 14, 95)
	check("", false)
}

// TestNotTheHeap: a heap with room after its last collection did not end the JVM, and what is known of the process is
// said beside it.
func TestNotTheHeap(t *testing.T) {
	var f trace.FullHeap
	p := trace.Process{RSS: 500 << 20, Limit: 512 << 20, Used: 510 << 20}
	if why := f.End(100, p); why != "" {
		t.Errorf("without a collection: %q", why)
	}
	f.Pause(trace.PauseYoung, 5, 80)
	if why := f.End(100, p); why != "" {
		t.Errorf("80 %% may be garbage or not: %q", why)
	}
	f.Pause(trace.PauseYoung, 6, 25)
	f.Pause(trace.PauseWalk, 7, 99)
	const want = "not the heap: the last collection left 25 % of its maximum in use, and the process had 500 MiB " +
		"resident; its container used 100 % of 512 MiB"
	if why := f.End(100, p); why != want {
		t.Errorf("%q", why)
	}
	if why := f.End(100, trace.Process{}); !strings.HasSuffix(why, "in use") {
		t.Errorf("%q", why)
	}
	f.Pause(trace.PauseFull, 8, 97)
	if why := f.End(100, p); !strings.Contains(why, "97 % full") {
		t.Errorf("%q", why)
	}
}
