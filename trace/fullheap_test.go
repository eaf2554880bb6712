package trace_test

import (
	"strings"
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// pause is a pause for an allocation, and so many bytes in use before and after it.
func pause(f *trace.FullHeap, kind, end, before, after uint64) {
	f.Pause(&trace.Pause{Kind: kind, Start: end, Cause: "Allocation Failure"}, before, after)
}

// TestFutile: two full collections in a row of a heap with an empty survivor space, of which the second frees nothing
// and makes no room, show that it is full. Those that free something, or that somebody asked for, do not.
func TestFutile(t *testing.T) {
	for _, c := range []struct {
		name, cause   string
		before, after uint64 // of the second
		full          bool
	}{
		{"futile", "Ergonomics", 810, 810, true},
		{"freed soft references", "Ergonomics", 810, 500, false},
		{"room for more", "Ergonomics", 900, 810, false},
		{"asked for", "System.gc()", 810, 810, false},
	} {
		var f trace.FullHeap
		pause(&f, trace.PauseYoung, 1, 900, 850)
		pause(&f, trace.PauseFull, 2, 850, 810)
		f.Pause(&trace.Pause{Kind: trace.PauseFull, Start: 3, Cause: c.cause}, c.before, c.after)
		if got := f.Cause(1000) != ""; got != c.full || f.Futile() != c.full {
			t.Errorf("%s: full is %v, futile is %v", c.name, got, f.Futile())
		}
	}
}

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
	pause(&f, trace.PauseYoung, 5, 99, 99)
	check("", false)
	pause(&f, trace.PauseFull, 10, 97, 97)
	pause(&f, trace.PauseWalk, 11, 97, 97)
	check("left the heap 97 % full", true)
	check("an OutOfMemoryError that ended the program", true)
	if f.Cause(0) != "" {
		t.Error("a heap of unknown size is full")
	}
	pause(&f, trace.PauseFull, 12, 60, 60)
	check("", true)
	pause(&f, trace.PauseFull, 13, 95, 95)
	pause(&f, trace.PauseYoung, 14, 95, 95)
	check("", false)
}

// TestNotTheHeap: a heap with room after its last collection did not end the JVM, and what is known of the process is
// said beside it.
func TestNotTheHeap(t *testing.T) {
	var f trace.FullHeap
	p := trace.Process{Time: 10e9, RSS: 500 << 20, Limit: 512 << 20, Used: 510 << 20}
	end := func(p trace.Process) string {
		return f.End(trace.LastKnown{Time: 18e9, MaxHeap: 100, Process: p})
	}
	if why := end(p); why != "" {
		t.Errorf("without a collection: %q", why)
	}
	pause(&f, trace.PauseYoung, 5, 80, 80)
	if why := end(p); why != "" {
		t.Errorf("80 %% may be garbage or not: %q", why)
	}
	pause(&f, trace.PauseYoung, 6, 25, 25)
	pause(&f, trace.PauseWalk, 7, 99, 99)
	const want = "not the heap: the last collection left 25 % of its maximum in use, and 8 s before the end the " +
		"process had 500 MiB resident; its container used 100 % of 512 MiB"
	if why := end(p); why != want {
		t.Errorf("%q", why)
	}
	if why := end(trace.Process{}); !strings.HasSuffix(why, "in use") {
		t.Errorf("%q", why)
	}
	pause(&f, trace.PauseFull, 8, 97, 97)
	if why := end(p); !strings.Contains(why, "97 % full") {
		t.Errorf("%q", why)
	}
}

// TestKilled: that the kernel killed the JVM comes first, and then what the heap and the process were like.
func TestKilled(t *testing.T) {
	var none, room, some, full trace.FullHeap
	pause(&room, trace.PauseYoung, 5, 25, 25)
	pause(&some, trace.PauseYoung, 5, 80, 80)
	pause(&full, trace.PauseFull, 5, 97, 97)
	const cgroup = "the kernel killed it because its memory cgroup reached its limit of 256 MiB " +
		"(most likely: the counter of kills of that cgroup rose)"
	const process = "; 8 s before the end the process had 200 MiB resident; its container used 90 % of 256 MiB"
	const limit = 256 << 20
	for _, c := range []struct {
		f    *trace.FullHeap
		k    trace.Killed
		want string
	}{
		{&none, trace.Killed{Scope: trace.KilledCgroup, Limit: limit}, cgroup + process},
		{&room, trace.Killed{Scope: trace.KilledCgroup, Limit: limit}, cgroup +
			"; the heap was not full: the last collection left 25 % of its maximum in use" + process},
		{&some, trace.Killed{Scope: trace.KilledCgroup}, "the kernel killed it for want of memory (most likely: the " +
			"counter of kills of its memory cgroup rose); the last collection left 80 % of the heap's maximum in use" +
			process},
		{&full, trace.Killed{Scope: trace.KilledAbove, Limit: limit}, "the kernel killed a process of the cgroup " +
			"above it for want of memory at about that time (its own memory cgroup is gone; a limit of " +
			"256 MiB was reached); the heap was full as well: the last full collection left 97 % of its maximum " +
			"in use" + process},
		{&none, trace.Killed{Scope: trace.KilledAbove}, "the kernel killed a process of the cgroup above it for want " +
			"of memory at about that time (its own memory cgroup is gone)" + process},
		{&none, trace.Killed{Scope: trace.KilledMachine},
			"the kernel killed a process for want of memory at about that time" + process},
	} {
		got := c.f.End(trace.LastKnown{Time: 18e9, MaxHeap: 100, Killed: &c.k,
			Process: trace.Process{Time: 10e9, RSS: 200 << 20, Limit: limit, Used: limit / 10 * 9}})
		if got != c.want {
			t.Errorf("%+v:\n%q\nwant\n%q", c.k, got, c.want)
		}
	}
	old := none.End(trace.LastKnown{Time: 400e9, Killed: &trace.Killed{Scope: trace.KilledMachine},
		Process: trace.Process{Time: 10e9, RSS: 1 << 20}})
	if !strings.HasSuffix(old, "; 6 min before the end the process had 1 MiB resident") {
		t.Errorf("%q", old)
	}
}
